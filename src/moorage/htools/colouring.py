# SPDX-License-Identifier: BSD-2-Clause
"""Colouring graphs: neighbours get different colours, few colours are wanted.

Three greedy heuristics; each takes the vertices in another order and gives every
one the smallest colour that no neighbour has. Ties go to the highest vertex.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Self

Edge = tuple[int, int]
"""From one vertex to another."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph; an edge may be there several times, and lead back to its start.

    Attributes
    ----------
    first : int
        The lowest vertex; they are numbered without gaps.
    neighbours : tuple of tuple of int
        For each vertex where its edges lead, the newest edge first.
    """

    first: int
    neighbours: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, low: int, high: int, edges: Iterable[Edge]) -> Self:
        """Return the graph of the vertices `low` to `high`, both included."""
        found: list[list[int]] = [[] for _ in range(low, high + 1)]
        for start, end in edges:
            found[start - low].append(end)
        return cls(low, tuple(tuple(ends[::-1]) for ends in found))

    @property
    def vertices(self) -> range:
        """The vertices, in order."""
        return range(self.first, self.first + len(self.neighbours))

    def around(self, vertex: int) -> tuple[int, ...]:
        """Return where the edges of a vertex lead."""
        return self.neighbours[vertex - self.first]

    def __str__(self) -> str:
        """Show vertices and edges as an association list.

        >>> str(Graph.of(1, 2, [(1, 2), (2, 1)]))
        'array (1,2) [(1,[2]),(2,[1])]'
        """
        lists = (
            f"({at},[{','.join(map(str, self.around(at)))}])" for at in self.vertices
        )
        ends = f"({self.first},{self.vertices.stop - 1})"
        return f"array {ends} [{','.join(lists)}]"


Colouring = list[list[int]]
"""The vertices of each colour, in order."""


class _Painter:
    """A graph that is being coloured.

    Attributes
    ----------
    colour : dict
        Vertex -> colour, from 0.
    seen : dict
        Vertex -> colour -> number of edges that lead to it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.colour: dict[int, int] = {}
        self.seen: dict[int, Counter[int]] = {at: Counter() for at in graph.vertices}

    def paint(self, vertex: int) -> None:
        """Give a vertex the smallest colour that is free."""
        taken, colour = self.seen[vertex], 0
        while colour in taken:
            colour += 1
        self.colour[vertex] = colour
        # Edges are there in both directions.
        for other in self.graph.around(vertex):
            self.seen[other][colour] += 1

    def classes(self) -> Colouring:
        """Return the vertices of each colour."""
        found: Colouring = [[] for _ in set(self.colour.values())]
        for vertex in self.graph.vertices:
            found[self.colour[vertex]].append(vertex)
        return found


def largest_first(graph: Graph) -> Colouring:
    """Colour in the order of falling degree.

    >>> largest_first(Graph.of(0, 2, [(0, 1), (1, 0), (1, 2), (2, 1)]))
    [[1], [0, 2]]
    """
    painter = _Painter(graph)
    ranked = ((len(graph.around(at)), at) for at in graph.vertices)
    for _, vertex in sorted(ranked, reverse=True):
        painter.paint(vertex)
    return painter.classes()


def most_colours_first(graph: Graph) -> Colouring:
    """Colour next who sees the most colours, then who has the most edges."""
    return _dynamic(graph, len)


def most_coloured_first(graph: Graph) -> Colouring:
    """Colour next who sees the most coloured neighbours, then who has most edges."""
    return _dynamic(graph, Counter.total)


def _dynamic(graph: Graph, rank: Callable[[Counter[int]], int]) -> Colouring:
    painter = _Painter(graph)
    left = set(graph.vertices)

    def urgency(vertex: int) -> tuple[int, int, int]:
        return rank(painter.seen[vertex]), len(graph.around(vertex)), vertex

    while left:
        vertex = max(left, key=urgency)
        left.remove(vertex)
        painter.paint(vertex)
    return painter.classes()


HEURISTICS: Final[dict[str, Callable[[Graph], Colouring]]] = {
    "LF": largest_first,
    "Dsatur": most_colours_first,
    "Dcolor": most_coloured_first,
}
"""The heuristics by the names that reports use."""


def painted(graph: Graph) -> dict[str, Colouring]:
    """Return what each heuristic makes of a graph, by its name."""
    return {name: paint(graph) for name, paint in HEURISTICS.items()}


def fewest(colourings: dict[str, Colouring]) -> Colouring:
    """Return the first colouring with the fewest colours.

    >>> fewest({"LF": [[1], [2]], "Dsatur": [[1, 2]]})
    [[1, 2]]
    """
    return min(colourings.values(), key=len)


def compared(colourings: dict[str, Colouring]) -> str:
    """Return how the heuristics did, the best first.

    >>> compared({"LF": [[1], [2]], "Dsatur": [[1, 2]]})
    'Dsatur: 1 (2) LOOSE LF: 2 (1,1)'
    """
    ranked = sorted(colourings.items(), key=lambda item: len(item[1]), reverse=True)
    said, before = "", 0
    for name, found in reversed(ranked):
        sizes = ",".join(str(len(members)) for members in found)
        if said:
            said += " TIE " if len(found) == before else " LOOSE "
        said += f"{name}: {len(found)} ({sizes})"
        before = len(found)
    return said
