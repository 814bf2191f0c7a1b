# SPDX-License-Identifier: BSD-2-Clause
"""The walk of a disk: each event once, in order, with what is so from then on."""

from random import Random

import pytest

from drawings import BAD, assert_inside, parsed, titles, words
from moorage.pictures.walk import DRAWN, ROWS, stops, walk


def moment(time):
    return f"at {time:.0f}"


def story(seed, length=None):
    """Return a random story, and owner, node, pool, size and epoch after each event.

    Where a disk is that somebody has, his story tells: its own says where it was last.
    """
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    now = {"instance": None, "last_node": None, "pool": "san", "size": 1024, "epoch": 0}
    first = {name: (None, value) for name, value in now.items() if value}
    events = [{"time": 0.0, "kind": "made", "what": "make it", "changed": first}]
    states = [dict(now)]
    for at in range(1, length or draw.randint(1, 90)):
        new = dict(now)
        new["instance"] = draw.choice((None, *(f"web{n}" for n in range(9))))
        new["last_node"] = draw.choice(("node1", "node2"))
        new["size"] += draw.choice((0, 512))
        new["epoch"] += draw.choice((0, 1))
        changed = {
            name: (now[name], new[name]) for name in new if new[name] != now[name]
        }
        events.append(
            {"time": float(at), "job": at, "what": f"step {at}", "changed": changed}
        )
        now = new
        states.append(new)
    told = {"name": "data1", "exists": True, "left_out": 0, "events": events}
    return told, states


@pytest.mark.parametrize("seed", range(30))
def test_each_event_is_there_once_with_what_is_so_then(seed):
    told, states = story(seed)
    found = list(stops(told["events"]))
    keys = ("instance", "last_node", "pool", "size", "epoch")
    told_nodes = [
        state | ({"last_node": ""} if state["instance"] else {}) for state in states
    ]
    expected = [
        tuple(state[key] or type(state[key] or "")() for key in keys)
        for state in told_nodes
    ]
    got = [(one.owner, one.node, one.pool, one.size, one.epoch) for one in found]
    assert [tuple(x or "" for x in one) for one in got] == [
        tuple(x or "" for x in one) for one in expected
    ]
    root = parsed(walk(told, moment))
    assert_inside(root)
    drawn = [title.split(":")[0] for title in titles(root)]
    names = [event["what"] for event in told["events"]]
    shown = names if len(names) <= DRAWN else [names[0], *names[1 - DRAWN :]]
    assert drawn == shown
    assert [words(th) for th in root.iterfind(".//tbody/tr/th")] == names[:ROWS]


def test_a_long_story_says_what_is_left_out():
    told, _ = story(1, length=1000)
    picture = walk(told | {"left_out": 7}, moment)
    assert len(picture.body) < 300_000
    assert "After the first one 7 events are not kept." in picture.body
    assert f"After the first one {1000 - DRAWN} events are not drawn." in picture.body
    assert f"{1000 - ROWS} events are not in this table" in picture.body


def test_a_story_without_a_beginning_and_a_disk_that_is_gone():
    events = [
        {"time": 1.0, "changed": {"instance": ("web1", None), "mode": ("rw", "ro")}},
        {"time": 2.0, "kind": "removed", "changed": {"size": (1024, None)}},
    ]
    told = {"name": "", "uuid": "u", "exists": False, "left_out": 0, "events": events}
    picture = walk(told, moment)
    assert picture.lead.startswith("It is gone.")
    assert "What happened before was not kept." in picture.body
    assert "mode rw \N{RIGHTWARDS ARROW} ro" in words(parsed(picture))
    empty = walk(told | {"events": []}, moment)
    assert empty.lead == "Nothing is told of it."


def test_names_full_of_markup_do_no_harm():
    changed = {"instance": (None, BAD), "pool": (None, BAD), "name": (BAD, BAD[::-1])}
    events = [{"time": 1.0, "what": BAD, "by": BAD, "job": 3, "changed": changed}]
    told = {"name": BAD, "exists": True, "left_out": 0, "events": events}
    root = parsed(walk(told, moment, lambda kind, name: f"/{kind}/{name}"))
    assert root.find(".//script") is None
    assert {a.get("href") for a in root.iter("a")} >= {f"/instance/{BAD}", "/job/3"}
