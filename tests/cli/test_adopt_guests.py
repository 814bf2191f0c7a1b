# SPDX-License-Identifier: BSD-2-Clause
"""``moorage adopt-guests``, typed at a simulated cluster with guests of Ganeti's."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desk import Desk, desk_at
from moorage.cli.htools import hroller
from moorage.model import Change, successor
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.scenarios import harbour


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    """Type at a cluster whose web1 runs in a process that Ganeti started."""
    async with desk_at(harbour) as found:
        ganeti_started(found, "web1")
        yield found


def key(at: Desk, name: str) -> str:
    uuid = at.cluster.config.instance(name).uuid
    (found,) = (one for one in at.cluster.nodes.san.guests if one.endswith(uuid))
    return str(found)


def ganeti_started(at: Desk, name: str, odd: Any = None, **other: Any) -> None:
    guests = at.cluster.nodes.san.guests
    found = guests[key(at, name)]
    state = found["state"] | {"origin": "foreign"} | other
    guests[key(at, name)] = found | {"state": state, "ganetis": odd or {}}


async def wrong(at: Desk, word: str) -> list[str]:
    told = json.loads((await at.screen("gnt-cluster verify --json")).out)
    found = [*told["errors"], *told.get("warnings", [])]
    return [one["message"] for one in found if word in one["message"]]


async def test_a_guest_is_taken_over_and_stopped(at: Desk) -> None:
    shown = await at.screen("moorage adopt-guests --dry-run")
    assert shown.status == 1
    assert shown.out.split()[-5:] == ["node1", "web1", "1", "ready", "-"]
    assert await wrong(at, "nobody has taken over")
    assert "by Ganeti, and nobody" in await at.types("gnt-instance info web1")
    assert "process of Ganeti's" in await at.refused("gnt-instance shutdown web1")
    assert "adopt-guests" in await at.refused("gnt-instance migrate -f web1")

    taken = await at.screen("moorage adopt-guests --yes")
    assert taken.status == 0
    assert "Took over guest web1" in taken.out + taken.err
    listed = "gnt-instance list --no-headers -o name,status web1"
    assert (await at.types(listed)).split() == ["web1", "running"]
    assert "adopted" in await at.types("moorage adopt-guests")
    assert not await wrong(at, "nobody has taken over")
    (told,) = await wrong(at, "as Ganeti started it")
    assert told.startswith("1 guest runs (web1)")
    assert "and taken over" in await at.types("gnt-instance info web1")
    said = await at.refused("gnt-instance migrate -f web1")
    assert "a migration needs a start of its own first" in said

    before = dict(at.cluster.config.objects)
    for line in (
        "gnt-instance grow-disk web1 0 64m",
        "gnt-instance modify --disk 0:detach web1",
        "gnt-instance modify --net add web1",
        "gnt-disk attach spare web1",
        "gnt-disk convert -t ext -p san root1",
        "gnt-disk clone --name c1 root1",
        "gnt-instance modify -t plain web1",
        "gnt-backup export --noshutdown -n node2 web1",
    ):
        assert "needs a start of its own first" in await at.refused(line)
    assert dict(at.cluster.config.objects) == before
    await at.types("gnt-instance reboot web1")
    assert "No node" in await at.types("moorage adopt-guests")
    await at.types("gnt-instance shutdown web1")


async def test_nothing_starts_it_a_second_time(at: Desk) -> None:
    """Not the watcher, not a person; not where its record is elsewhere, either."""
    before = dict(at.cluster.nodes.san.guests)
    await at.types("moorage watcher")
    await at.types("gnt-instance startup web1")
    for line in ("reboot", "failover -f", "remove -f"):
        await at.refused(f"gnt-instance {line} web1")
    assert dict(at.cluster.nodes.san.guests) == before
    assert not at.cluster.nodes.san.broken


async def test_what_has_other_disks_is_left_alone(at: Desk) -> None:
    ganeti_started(at, "web1", disks=["0a1b2c3d-0000-4000-8000-000000000000"])
    said = await at.refused("moorage adopt-guests --yes web1")
    assert "not on record" in said
    assert at.cluster.nodes.san.guests[key(at, "web1")]["state"]["origin"] == "foreign"
    assert "no node has a guest web2" in await at.refused("moorage adopt-guests web2")


async def fleet(directory: Path) -> SimCluster:
    """Return five nodes with mirrored guests, and two others on node1."""
    cluster = await SimCluster.start(directory, ClusterBuilder(nodes=5))
    pairs = (("node1", "node2"), ("node3", "node4"), ("node4", "node5"))
    for number, (home, peer) in enumerate(pairs):
        await cluster.run(
            "OP_INSTANCE_CREATE",
            instance_name=f"m{number}",
            disk_template="drbd",
            disks=[{"size": 64}],
            pnode=home,
            snode=peer,
        )
    for name in ("f0", "f1"):
        await cluster.run(
            "OP_INSTANCE_CREATE",
            instance_name=name,
            disk_template="sharedfile",
            disks=[{"size": 64}],
            pnode="node1",
        )
    return cluster


NAMES = ("f0", "f1", "m0", "m1", "m2")


@pytest.fixture
async def afar() -> AsyncIterator[Desk]:
    """Type at a cluster none of whose guests can be taken over."""
    async with desk_at(fleet) as found:
        for name in NAMES:
            ganeti_started(found, name, {"afar": ["rbd"]})
        yield found


async def plan(at: Desk, *words: str) -> list[list[str]]:
    """Return wave, node, guest and state of each row."""
    shown = await at.screen(
        f"moorage adopt-guests --restart --dry-run {' '.join(words)}"
    )
    assert shown.status == 1
    title, *rows = shown.out.splitlines()
    assert title.split() == ["Wave", "Node", "Guest", "State", "Restart"]
    return [row.split()[:4] for row in rows]


async def origins(at: Desk) -> dict[str, str]:
    guests = at.cluster.nodes.san.guests
    return {one: guests[key(at, one)]["state"].get("origin", "") for one in NAMES}


async def test_waves_are_those_of_hroller(
    afar: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = await plan(afar)
    way = [f"-L{afar.environ['MOORAGE_SOCKET']}", "--ignore-non-redundant"]
    assert not await asyncio.to_thread(hroller.main, [*way, "--no-headers"])
    waves = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert len(waves) > 1
    assert {(int(wave), node) for wave, node, *_ in rows} == {
        (number, node)
        for number, nodes in enumerate(waves, 1)
        for node in nodes
        if node in ("node1", "node3", "node4")
    }
    assert sorted(name for _, _, name, _ in rows) == sorted(NAMES)
    assert set((await origins(afar)).values()) == {"foreign"}
    done = await afar.screen("moorage adopt-guests --restart --yes")
    assert done.status == 0, done
    order = [line.split()[2] for line in done.err.splitlines() if "Restarted" in line]
    assert sorted(order) == sorted(NAMES)
    numbers = {name: int(wave) for wave, _, name, _ in rows}
    assert [numbers[name] for name in order] == sorted(numbers.values())
    assert set((await origins(afar)).values()) == {""}
    assert not afar.cluster.nodes.san.broken
    assert "No guest" in await afar.types("moorage adopt-guests --restart")


async def test_the_first_that_fails_stops_the_waves_and_they_go_on_later(
    afar: Desk,
) -> None:
    first = (await plan(afar))[0][2]
    ganeti_started(afar, first, {"afar": ["rbd"], "stays": True})
    shown = await afar.screen("moorage adopt-guests --restart --yes")
    assert shown.status == 1
    assert f"once {first} can be restarted" in shown.err
    left = {name for name, one in (await origins(afar)).items() if one}
    assert first in left
    assert len(left) > 1
    assert {name for *_, name, _ in await plan(afar)} == left
    ganeti_started(afar, first, {"afar": ["rbd"]})
    await afar.types("moorage adopt-guests --restart --yes")
    assert set((await origins(afar)).values()) == {""}


async def test_whose_monitor_is_silent_is_listed_and_restarted_by_hand(
    afar: Desk,
) -> None:
    ganeti_started(afar, "m1", {"monitor": "its monitor gives no answer"})
    ((wave, *row),) = await plan(afar, "m1")
    assert (wave, row) == ("-", ["node3", "m1", "restart"])
    shown = await afar.screen("moorage adopt-guests --restart --yes m1")
    assert shown.status == 1
    assert "power it off from inside" in shown.out
    assert (await origins(afar))["m1"] == "foreign"
    del afar.cluster.nodes.san.guests[key(afar, "m1")]  # somebody did
    await afar.types("gnt-instance startup m1")
    assert (await origins(afar))["m1"] == ""


async def test_one_that_was_taken_over_is_restarted_by_its_name(at: Desk) -> None:
    await at.types("moorage adopt-guests --yes")
    assert "No guest" in await at.types("moorage adopt-guests --restart")
    shown = await at.screen("moorage adopt-guests --restart --dry-run web1")
    assert "ended if it does not" in shown.out
    await at.types("moorage adopt-guests --restart --yes web1")
    assert "No node" in await at.types("moorage adopt-guests")
    said = await at.refused("moorage adopt-guests --shutdown-timeout 5")
    assert "goes with --restart" in said


async def test_none_is_powered_off_that_could_not_start(at: Desk) -> None:
    """What an import brought, and a default of the cluster's."""
    for name, value, why in (
        ("machine_version", "isapc", "not a version of pc or q35"),
        ("vga", "qxl", "vga 'qxl' is none of"),
        ("cpu_cores", 3, "cpu_cores=3 makes 3"),
    ):
        web1 = at.cluster.config.instance("web1")
        odd = successor(web1, 1.0, hvparams={name: value})
        await at.cluster.config_store.commit(Change((odd,)))
        assert await wrong(at, "it cannot start: ")
        said = await at.refused("moorage adopt-guests --restart --yes web1")
        assert why in said
        found = at.cluster.nodes.san.guests[key(at, "web1")]
        assert found["state"]["origin"] == "foreign"


async def test_the_same_names_go_on_past_what_is_done_or_down(afar: Desk) -> None:
    """One is restarted already, and the start of another failed."""
    await afar.types("moorage adopt-guests --restart --yes f0")
    del afar.cluster.nodes.san.guests[key(afar, "f1")]
    assert await plan(afar, "f0", "f1", "m1") == [
        ["1", "node1", "f1", "down"],
        ["1", "node3", "m1", "restart"],
    ]
    await afar.types("moorage adopt-guests --restart --yes f0 f1 m1")
    origin = await origins(afar)
    assert [name for name in NAMES if not origin[name]] == ["f0", "f1", "m1"]
    await afar.types("moorage adopt-guests --restart --yes f0 f1")
    del afar.cluster.nodes.san.guests[key(afar, "f1")]
    assert ["1", "node1", "f1", "down"] in await plan(afar)
    await afar.types("moorage adopt-guests --restart --yes")
    assert set((await origins(afar)).values()) == {""}
    await afar.types("gnt-instance shutdown f1")
    said = await afar.refused("moorage adopt-guests --restart --yes f1")
    assert "no node has a guest f1" in said


async def test_those_that_nobody_named_are_told_of(at: Desk) -> None:
    shown = await at.screen("moorage adopt-guests --restart --yes")
    assert shown.status == 1
    assert "Left as they are: 1 other guest" in shown.err
    assert at.cluster.nodes.san.guests[key(at, "web1")]["state"]["origin"] == "foreign"
