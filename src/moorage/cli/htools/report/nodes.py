# SPDX-License-Identifier: BSD-2-Clause
"""The table of nodes: a row each, a bar for each resource and scene.

Beyond `MOST` nodes only those that change most have a row.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from moorage.cli.htools.report.bars import Bar, Frame, drawing
from moorage.cli.htools.report.html import Markup, el, joined
from moorage.cli.htools.report.page import headings, legend
from moorage.cli.htools.report.scenes import Room, Scene, cpu, memory, rooms, summed
from moorage.htools.inst import NOWHERE
from moorage.htools.node import Node
from moorage.htools.survival.n1 import unlosable
from moorage.units import format_size

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

    def legend(self, **changed: str | None) -> Markup:
        """Return what the colours mean, but for kinds that do not occur."""
        if not self.pairs:
            changed |= {"copy": None, "kept": None}
        return legend(**changed)

    def markup(self, *, whole: bool = False) -> Markup:
        """Return the table; `whole` adds a row for the cluster."""
        heads = ["Node", "Instances", "Memory", "Disk", "Virtual CPUs"]
        if not self.has_disk:
            heads.remove("Disk")
        return el(
            "table",
            el("caption", self._caption()),
            headings(heads),
            self._whole() if whole else None,
            *self._bodies(),
            class_="nodes" if len(self.scenes) < 3 else "nodes three",
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

    def _bodies(self) -> Iterator[Markup]:
        """Yield the rows of each group, under its name if there are several."""
        groups: dict[int, list[int]] = {}
        for at in self.shown:
            groups.setdefault(self.start.nodes[at].group, []).append(at)
        for group, places in groups.items():
            name = self.start.groups[group].name
            head = el("tr", el("th", f"Group {name}", colspan=5, scope="rowgroup"))
            yield el(
                "tbody",
                head if len(groups) > 1 else None,
                *(self._row(at) for at in places),
            )

    def _row(self, at: int) -> Markup:
        node = self.start.nodes[at]
        draw = partial(drawing, frame=self.frame)
        cells = [
            draw(f"{node.alias} memory", [memory(scene, at) for scene in self.scenes]),
            joined(self._rooms(at)) if self.has_disk else None,
            draw(f"{node.alias} CPU", [cpu(scene, at) for scene in self.scenes]),
        ]
        return el(
            "tr",
            el("th", *self._about(at), scope="row"),
            el("td", *self._people(at), class_="people"),
            *(el("td", cell) for cell in cells if cell is not None),
        )

    def _rooms(self, at: int) -> Iterator[Markup]:
        for room in rooms(self.scenes, at):
            if room.name is not None:
                yield el("small", _unit_label(room))
            name = f"{self.start.nodes[at].alias} {room.title}"
            yield drawing(name, room.bars, self.frame)

    def _about(self, at: int) -> Iterator[Markup]:
        """Yield the name of a node, its size, and what is wrong with it."""
        node = self.start.nodes[at]
        yield el("span", node.alias, class_="name")
        if not self.alike:
            yield el("small", self._size(node))
        for note in self._notes(at):
            yield el("small", note, class_="note")

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

    def _people(self, at: int) -> Iterator[Markup]:
        for scene in self.scenes:
            node = scene.node(at)
            more = f" + {len(node.secondaries)}" if self.pairs else ""
            yield el("span", f"{len(node.primaries)}{more}")

    def _whole(self) -> Markup:
        """Return the row of all nodes together."""
        view = self.start.view
        columns: list[Callable[[Scene, int], list[Bar]]] = [
            lambda scene, at: [memory(scene, at)],
            lambda scene, at: [bar for room in rooms([scene], at) for bar in room.bars],
            lambda scene, at: [cpu(scene, at)],
        ]
        names = ["All nodes, memory", "All nodes, disk", "All nodes, CPU"]
        if not self.has_disk:
            del columns[1], names[1]
        cells = []
        for name, column in zip(names, columns, strict=True):
            bars = [[b for at in view for b in column(s, at)] for s in self.scenes]
            cells.append(
                drawing(name, [summed(some) for some in bars if some], self.frame)
            )
        counts = (
            el("span", f"{sum(len(scene.node(at).primaries) for at in view):,}")
            for scene in self.scenes
        )
        return el(
            "tbody",
            el(
                "tr",
                el("th", f"All {len(view):,} nodes", scope="row"),
                el("td", *counts, class_="people"),
                *(el("td", cell) for cell in cells),
            ),
            class_="whole",
        )

    def details(self) -> Markup:
        """Return the same in numbers, to be unfolded."""
        return el("details", el("summary", "The nodes in numbers"), self._numbers())

    def _numbers(self) -> Markup:
        heads = ["Node", "When", "Instances", "Secondaries", "Memory", "used", "kept"]
        heads += ["Disk", "used", "Virtual CPUs", "used"]
        return el(
            "table",
            el("caption", "What the bars show, in MiB and processors."),
            headings(heads),
            el("tbody", *(joined(self._number_rows(at)) for at in self.shown)),
            class_="numbers",
        )

    def _number_rows(self, at: int) -> Iterator[Markup]:
        for scene in self.scenes:
            node = scene.node(at)
            mem, cpus = memory(scene, at), cpu(scene, at)
            space = [room.bars[0] for room in rooms([scene], at)]
            values = [len(node.primaries), len(node.secondaries)]
            values += [round(v) for v in (mem.capacity, mem.used, mem.kept)]
            values += [round(sum(bar.capacity for bar in space))]
            values += [round(sum(bar.used for bar in space))]
            values += [round(cpus.capacity), round(cpus.used)]
            yield el(
                "tr",
                el("th", node.alias, scope="row"),
                el("td", scene.name, class_="word"),
                *(el("td", str(value)) for value in values),
            )


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
