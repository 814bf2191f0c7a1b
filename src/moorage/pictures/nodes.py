# SPDX-License-Identifier: BSD-2-Clause
"""The table of nodes: a row each, a bar for each resource and scene.

Beyond `MOST` nodes only those that change most have a row.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from markupsafe import Markup

from moorage.htools.inst import NOWHERE
from moorage.htools.node import Node
from moorage.htools.survival.n1 import unlosable
from moorage.units import format_size

from .bars import Bar, Frame, drawing
from .ink import drawn
from .scenes import Room, Scene, cpu, memory, rooms, summed

MEANINGS: Final = {
    "own": "system and other use",
    "stays": "instance that stays",
    "copy": "second copy of a disk",
    "goes": "leaves (number of the step)",
    "comes": "arrives (number of the step)",
    "kept": "memory kept for a failover",
    "free": "free",
}
"""What the kinds of parts of a bar mean."""
MOST: Final = 100
CHOSEN: Final = 60
_NAMED: Final = 300
"""Instances up to which each part of a bar can be pointed at."""
_WIDE: Final = 272
_WIDER: Final = 418


class NodeTable:
    """The nodes of a cluster in some scenes.

    Parameters
    ----------
    scenes
        At least one; the first says which nodes there are.
    """

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self.scenes = scenes
        self.start = scenes[0].state
        everyone = self.start.view
        self.shown = everyone if len(everyone) <= MOST else self._changing()
        self.fragile = (
            [set(unlosable(scene.state)) for scene in scenes]
            if len(everyone) <= MOST
            else []
        )
        self.has_disk = any(self._uses_disk(at) for at in self.shown)
        self.pairs = any(inst.s != NOWHERE for inst in scenes[-1].state.people)
        sizes = {self._size(node) for node in self.start.seen if not node.offline}
        self.alike = sizes.pop() if len(sizes) == 1 else ""
        self.frame = Frame(
            width=_WIDE if self.has_disk else _WIDER,
            height=12 if len(scenes) < 3 else 10,
            gap=3 if len(scenes) < 3 else 2,
            named=len(scenes[-1].state.members) <= _NAMED,
        )

    def _changing(self) -> tuple[int, ...]:
        """Return the nodes whose resources change most, in order."""
        nodes = sorted(self.start.view, key=lambda at: -self._change(at))
        return tuple(sorted(nodes[:CHOSEN]))

    def _change(self, at: int) -> float:
        old = self.scenes[0].node(at)
        return max(_distance(old, scene.node(at)) for scene in self.scenes)

    def _uses_disk(self, at: int) -> bool:
        bars = (bar for room in rooms(self.scenes, at) for bar in room.bars)
        return any(bar.used > 0 for bar in bars)

    def legend(self, **changed: str | None) -> dict[str, str]:
        """Return what the colours mean, but for kinds that do not occur.

        Parameters
        ----------
        changed
            Other words for a kind; None leaves it out.
        """
        if not self.pairs:
            changed |= {"copy": None, "kept": None}
        meanings = (MEANINGS | changed).items()
        return {kind: words for kind, words in meanings if words is not None}

    def markup(self, *, whole: bool = False) -> Markup:
        """Return the table; `whole` adds a row for the cluster."""
        heads = ["Node", "Instances", "Memory", "Disk", "Virtual CPUs"]
        if not self.has_disk:
            heads.remove("Disk")
        return drawn(
            "nodes.html",
            caption=self._caption(),
            heads=heads,
            has_disk=self.has_disk,
            three=len(self.scenes) > 2,
            whole=self._whole() if whole else None,
            groups=self._groups(),
        )

    def _caption(self) -> str:
        many, few = len(self.start.view), len(self.shown)
        names = [scene.name for scene in self.scenes]
        said = f"Bars from the top: {', '.join(names)}. A full bar is the whole node"
        said += f" ({self.alike})" if self.alike else ""
        said += "; of virtual CPUs, what its policy allows."
        if few < many:
            said = f"The {few} of {many:,} nodes that change most. {said}"
        if self.pairs:
            said = f"{said} Instances are primary + secondary."
        if any(self.fragile):
            said = f"{said} Cannot be lost: somebody there could restart nowhere."
        return said

    def _groups(self) -> list[dict[str, object]]:
        """Return the rows of each group."""
        groups: dict[int, list[int]] = {}
        for at in self.shown:
            groups.setdefault(self.start.nodes[at].group, []).append(at)
        return [
            {
                "name": self.start.groups[group].name,
                "rows": [self._row(at) for at in places],
            }
            for group, places in groups.items()
        ]

    def _row(self, at: int) -> dict[str, object]:
        node = self.start.nodes[at]
        draw = partial(drawing, frame=self.frame)
        return {
            "name": node.alias,
            "size": "" if self.alike else self._size(node),
            "notes": list(self._notes(at)),
            "people": list(self._people(at)),
            "memory": draw(
                f"{node.alias} memory", [memory(s, at) for s in self.scenes]
            ),
            "rooms": list(self._rooms(at)) if self.has_disk else [],
            "cpu": draw(f"{node.alias} CPU", [cpu(s, at) for s in self.scenes]),
        }

    def _rooms(self, at: int) -> Iterator[tuple[str, Markup]]:
        for room in rooms(self.scenes, at):
            name = f"{self.start.nodes[at].alias} {room.title}"
            label = "" if room.name is None else _unit_label(room)
            yield label, drawing(name, room.bars, self.frame)

    def _size(self, node: Node) -> str:
        facts = [short_size(node.mem_total)]
        if self.has_disk and node.units is None:
            facts.append(short_size(node.disk_total))
        return " \u00b7 ".join([*facts, f"{node.cpus:.0f} CPU"])

    def _notes(self, at: int) -> Iterator[str]:
        if self.start.nodes[at].offline:
            yield "offline"
        failing = [scene.node(at).fails_n1 for scene in self.scenes]
        if any(failing) and not self.start.nodes[at].offline:
            yield f"N+1 fails{self._when(failing)}"
        stranding = [at in some for some in self.fragile]
        if any(stranding):
            yield f"cannot be lost{self._when(stranding)}"

    def _when(self, claims: Sequence[bool]) -> str:
        """Return in which scenes a claim holds; nothing if in all."""
        if all(claims):
            return ""
        pairs = zip(self.scenes, claims, strict=True)
        names = ", ".join(scene.name for scene, holds in pairs if holds)
        return f" ({names})"

    def _people(self, at: int) -> Iterator[str]:
        for scene in self.scenes:
            node = scene.node(at)
            more = f" + {len(node.secondaries)}" if self.pairs else ""
            yield f"{len(node.primaries)}{more}"

    def _whole(self) -> dict[str, object]:
        """Return the row of all nodes together."""
        view = self.start.view
        columns: dict[str, Callable[[Scene, int], list[Bar]]] = {
            "memory": lambda scene, at: [memory(scene, at)],
            "disk": lambda scene, at: [
                bar for room in rooms([scene], at) for bar in room.bars
            ],
            "CPU": lambda scene, at: [cpu(scene, at)],
        }
        if not self.has_disk:
            del columns["disk"]
        cells = []
        for name, column in columns.items():
            bars = [[b for at in view for b in column(s, at)] for s in self.scenes]
            sums = [summed(some) for some in bars if some]
            cells.append(drawing(f"All nodes, {name}", sums, self.frame))
        return {
            "name": f"All {len(view):,} nodes",
            "people": [
                f"{sum(len(scene.node(at).primaries) for at in view):,}"
                for scene in self.scenes
            ],
            "cells": cells,
        }

    def details(self) -> Markup:
        """Return the same in numbers, to be unfolded."""
        rows = [row for at in self.shown for row in self._numbers(at)]
        return drawn("numbers.html", rows=rows)

    def _numbers(self, at: int) -> Iterator[dict[str, object]]:
        for scene in self.scenes:
            node = scene.node(at)
            mem, cpus = memory(scene, at), cpu(scene, at)
            space = [room.bars[0] for room in rooms([scene], at)]
            values = [len(node.primaries), len(node.secondaries)]
            values += [round(v) for v in (mem.capacity, mem.used, mem.kept)]
            values += [round(sum(bar.capacity for bar in space))]
            values += [round(sum(bar.used for bar in space))]
            values += [round(cpus.capacity), round(cpus.used)]
            yield {"name": node.alias, "when": scene.name, "values": values}


def _distance(old: Node, new: Node) -> float:
    """Return how much of a node's resources changes hands."""
    pairs = (
        (old.unallocated - new.unallocated, old.mem_total),
        (old.disk_free - new.disk_free, old.disk_total),
        (old.cpu_used - new.cpu_used, old.cpu_limit),
    )
    return sum(abs(part) / whole for part, whole in pairs if whole > 0)


def _unit_label(room: Room) -> str:
    return f"{room.title} {short_size(room.bars[0].capacity)}"


def short_size(mib: float) -> str:
    """Return a size without a decimal that says nothing.

    >>> short_size(32768), short_size(1536)
    ('32G', '1.5G')
    """
    return format_size(mib).replace(".0", "")
