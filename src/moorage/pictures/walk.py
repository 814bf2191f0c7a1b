# SPDX-License-Identifier: BSD-2-Clause
"""The walk of a disk: whose it was, where, how large, over time.

Time goes down, an event a row. The line runs in the lane of the instance that has the
disk; the first lane is nobody's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from moorage.units import format_size

from .ink import Picture, drawn, fitting, num

WIDTH: Final = 360
DRAWN: Final = 60
"""Events that are drawn: the first one, and the newest."""
ROWS: Final = 200
"""Events that the table lists."""
LANES: Final = 6
_ROW: Final = 42
_LANE: Final = 16
_LEFT: Final = 10
_ARROW: Final = "\N{RIGHTWARDS ARROW}"
_STATE: Final = frozenset({"instance", "nodes", "last_node", "pool", "size", "epoch"})
"""Fields that have a column of their own."""


class Stop(NamedTuple):
    """An event of a disk's story, and how things are from then on.

    Attributes
    ----------
    time : float
        In seconds.
    what : str
        What happened, in the words of the step.
    owner : str
        The instance that has the disk; empty for none.
    node : str
        Where the disk is, several with commas. Of one that many nodes reach it is told
        while nobody has it: where it was last. An instance's node, its own story tells.
    size : int or None
        In MiB.
    more : tuple of str
        What else changed, as ``mode rw → ro``.
    """

    time: float
    what: str
    owner: str = ""
    node: str = ""
    pool: str = ""
    size: int | None = None
    epoch: int = 0
    job: int = 0
    by: str = ""
    more: tuple[str, ...] = ()


def stops(events: Sequence[Mapping[str, Any]]) -> Iterator[Stop]:
    """Yield the stops of a story, as `QueryDiskStory` tells its events."""
    now: dict[str, Any] = {}
    for event in events:
        changed = event.get("changed", {})
        gone = event.get("kind") == "removed"
        # A story whose beginning was not kept tells by the old value what was before.
        now |= {name: pair[1] for name, pair in changed.items() if not gone}
        if gone:
            now["instance"] = None
        made = event.get("kind") == "made"
        told = [
            f"{name} {_short(old)} {_ARROW} {_short(new)}"
            for name, (old, new) in changed.items()
            if name not in _STATE and not made and not gone
        ]
        last = "" if now.get("instance") else now.get("last_node") or ""
        nodes = now.get("nodes") or [last]
        yield Stop(
            time=float(event.get("time", 0.0)),
            what=str(event.get("what") or event.get("kind", "changed")),
            owner=str(now.get("instance") or ""),
            node=", ".join(map(str, nodes)),
            pool=str(now.get("pool") or ""),
            size=now.get("size"),
            epoch=int(now.get("epoch") or 0),
            job=int(event.get("job", 0)),
            by=str(event.get("by", "")),
            more=tuple(told),
        )


def _short(value: Any) -> str:  # noqa: ANN401 - any JSON
    if value in (None, "", [], {}):
        return "nothing"
    text = str(value) if not isinstance(value, list) else "/".join(map(str, value))
    return fitting(text, 40, 1)


def walk(
    told: Mapping[str, Any],
    moment: Callable[[float], str],
    address: Callable[[str, object], str] | None = None,
) -> Picture:
    """Return the picture of a disk's story.

    Parameters
    ----------
    told
        What `QueryDiskStory` answers.
    moment
        Writes a time.
    address
        Returns where an object of a kind is: of ``instance``, ``node``, ``pool`` by
        name, of ``job`` by number. Without it nothing leads anywhere.
    """
    every = list(stops(told["events"]))
    first = told["events"][0].get("kind") if told["events"] else None
    begins = first == "made"
    shown = every if len(every) <= DRAWN else [every[0], *every[1 - DRAWN :]]
    listed = every if len(every) <= ROWS else [every[0], *every[1 - ROWS :]]
    owners = list(dict.fromkeys(stop.owner for stop in shown if stop.owner))
    lanes = {"": 0} | {owner: min(at, LANES - 1) for at, owner in enumerate(owners, 1)}
    skipped = len(every) - len(shown)
    body = drawn(
        "walk.html",
        name=told["name"],
        rows=_rows(shown, lanes, moment, skipped),
        lanes=min(len(owners), LANES - 1) + 1,
        tall=len(shown) * _ROW,
        width=WIDTH,
        notes=list(_notes(told, begins=begins, skipped=skipped, owners=len(owners))),
        listed=listed,
        more=len(every) - len(listed),
        moment=moment,
        address=address,
        format_size=format_size,
    )
    return Picture(f"The walk of disk {told['name']}", _lead(told, every), body)


def _lead(told: Mapping[str, Any], every: Sequence[Stop]) -> str:
    if not every:
        return "Nothing is told of it."
    last, owners = every[-1], {stop.owner for stop in every if stop.owner}
    nodes = {name for stop in every for name in stop.node.split(", ") if name}
    if not told["exists"]:
        now = "It is gone"
    elif last.owner:
        now = f"It is {last.owner}'s" + (f", on {last.node}" if last.node else "")
    else:
        now = "It belongs to nobody"
    return (
        f"{now}. {_many(len(every), 'event')}, {_many(len(owners), 'instance')}, "
        f"{_many(len(nodes), 'node')}."
    )


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _notes(
    told: Mapping[str, Any], *, begins: bool, skipped: int, owners: int
) -> Iterator[str]:
    if not begins:
        yield "What happened before was not kept."
    if told["left_out"]:
        yield f"After the first one {_many(told['left_out'], 'event')} are not kept."
    if skipped:
        yield f"After the first one {_many(skipped, 'event')} are not drawn."
    if owners > LANES - 1:
        yield f"The last lane is that of {owners - LANES + 2} instances."


def _rows(
    shown: Sequence[Stop],
    lanes: Mapping[str, int],
    moment: Callable[[float], str],
    skipped: int,
) -> list[dict[str, object]]:
    """Return what the template draws of each event, in units of the drawing."""
    left = _LEFT + _LANE * (max(lanes.values()) + 1)
    room = WIDTH - left
    places = [_LEFT + _LANE * lanes[stop.owner] for stop in shown]
    rows = []
    for at, (stop, x) in enumerate(zip(shown, places, strict=True)):
        y = at * _ROW + 12
        line = f"M{x} {y}V{y + _ROW}"
        if at + 1 < len(shown) and places[at + 1] != x:
            to = places[at + 1]
            line = (
                f"M{x} {y}C{x} {y + _ROW / 2} {to} {num(y + _ROW / 2)} {to} {y + _ROW}"
            )
        where = f"{stop.owner or 'nobody'}{f' on {stop.node}' if stop.node else ''}"
        when = f"{moment(stop.time)} \N{MIDDLE DOT} {where}"
        facts = _facts(stop, shown[at - 1] if at else None)
        rows.append(
            {
                "x": x,
                "y": y,
                "line": "" if at + 1 == len(shown) else line,
                "gap": at == 0 and skipped > 0,
                "nobody": not stop.owner,
                "text": left,
                "what": fitting(stop.what, room, 11),
                "when": fitting(when, room, 9),
                "facts": fitting(facts, room, 9),
                "title": f"{stop.what}: {when}; {facts}",
            }
        )
    return rows


def _facts(stop: Stop, before: Stop | None) -> str:
    """Return what is so from then on, but for what was so before."""
    facts = []
    if stop.size is not None and (before is None or before.size != stop.size):
        facts.append(format_size(stop.size))
    if stop.pool and (before is None or before.pool != stop.pool):
        facts.append(f"pool {stop.pool}")
    if before is None or before.epoch != stop.epoch:
        facts.append(f"epoch {stop.epoch}")
    jobs = [f"job {stop.job}"] if stop.job else []
    return " \N{MIDDLE DOT} ".join([*jobs, *facts, *stop.more])
