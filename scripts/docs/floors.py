# SPDX-License-Identifier: BSD-2-Clause

"""The floors of the code and the wings of its packages, drawn from the imports.

The import contracts in ``pyproject.toml`` say which rooms lie beside and above each
other; the imports say which ones a room stands on. ``python scripts/docs/floors.py``
prints the whole house.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any

import grimp

ROOT = Path(__file__).resolve().parents[2]
HOUSE = "moorage"
WIDTH = 104
"""Characters of a drawing, its walls included."""
Arrows = Mapping[str, frozenset[str]]
"""Each room with those of the same package that it imports."""


class UpwardError(Exception):
    """A room imports one that does not lie below it."""


@cache
def contracts() -> list[Mapping[str, Any]]:
    """Return the contracts that say what may import what in the house."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    every = settings["tool"]["importlinter"]["contracts"]
    return [one for one in every if not _is_the_clouds(one)]


def _is_the_clouds(contract: Mapping[str, Any]) -> bool:
    about = contract.get("source_modules") or contract.get("containers", [])
    return any(one.startswith("moorage_cloud") for one in about)


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(HOUSE, cache_dir=None)


def floors_of(package: str) -> list[list[str]]:
    """Return the rooms of a package from top to bottom, those side by side together."""
    for one in contracts():
        if one["type"] == "layers" and package in one.get("containers", [HOUSE]):
            return [_side_by_side(layer) for layer in one["layers"]]
    raise KeyError(f"no contract says how {package} is built")


def _side_by_side(layer: str) -> list[str]:
    rooms = [room.strip("() ") for room in layer.split("|")]
    return [room.removeprefix(f"{HOUSE}.") for room in rooms]


def pure() -> frozenset[str]:
    """Return the rooms of the house that do no I/O."""
    (one,) = [one for one in contracts() if "os" in one.get("forbidden_modules", ())]
    return frozenset(room.removeprefix(f"{HOUSE}.") for room in one["source_modules"])


def arrows(package: str, floors: Sequence[Sequence[str]]) -> Arrows:
    """Return which rooms of a package import which.

    Raises
    ------
    UpwardError
        If one of them does not lie below the other.
    """
    level = {room: n for n, rooms in enumerate(floors) for room in rooms}
    found = {room: set[str]() for room in level}
    for room, floor in level.items():
        inside = f"{package}.{room}"
        for module in (inside, *_graph().find_descendants(inside)):
            for other in _graph().find_modules_directly_imported_by(module):
                below = other.removeprefix(f"{package}.").partition(".")[0]
                if other.startswith(f"{package}.") and below in level and below != room:
                    found[room].add(below)
        for below in found[room]:
            if level[below] <= floor:
                raise UpwardError(f"{inside} imports {package}.{below}")
    return {room: frozenset(below) for room, below in found.items()}


def stands_on(room: str, every: Arrows) -> list[str]:
    """Return what a room imports, but for what is below others that it imports."""
    hidden = set[str]()
    waiting = list(every[room])
    while waiting:
        below = every[waiting.pop()]
        waiting += below - hidden
        hidden |= below
    return sorted(every[room] - hidden)


def drawing(package: str) -> Iterator[str]:
    """Yield the lines of a drawing: a floor a row, a room a cell.

    A cell has the room's name, what it is, and what it stands on; ``*`` marks what does
    no I/O.
    """
    floors = floors_of(package)
    every = arrows(package, floors)
    above: list[int] = []
    for rooms in floors:
        cells = [list(_cell(package, room, every, len(rooms))) for room in rooms]
        walls = _walls(cells)
        yield _ceiling({*above, *walls})
        yield from _row(cells, walls)
        above = walls
    yield _ceiling(set(above))


def _cell(package: str, room: str, every: Arrows, rooms: int) -> Iterator[str]:
    yield f"{room}*" if package == HOUSE and room in pure() else room
    if rooms <= _WITH_WORDS:
        yield _words(package, room)
    if below := stands_on(room, every):
        yield f"-> {' '.join(below)}"


_WITH_WORDS = 3
"""How many rooms side by side have the space to say what they are."""


def _words(package: str, room: str) -> str:
    path = ROOT.joinpath("src", *package.split("."), room)
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text())) or "").splitlines()[0]


def _walls(cells: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns of the walls: the same for each cell, if their words fit."""
    equal = (WIDTH - 1) / len(cells)
    least = [
        3 + max(len(word) for line in one for word in line.split()) for one in cells
    ]
    spare = equal - sum(least) / len(cells)
    fits = max(least) <= equal
    widths = [equal if fits else width + spare for width in least]
    return [0, *(round(place) for place in accumulate(widths))]


def _ceiling(walls: set[int]) -> str:
    return "".join("+" if n in walls else "-" for n in range(WIDTH))


def _row(cells: Sequence[Sequence[str]], walls: Sequence[int]) -> Iterator[str]:
    widths = [right - left - 1 for left, right in pairwise(walls)]
    texts = [
        [part for line in cell for part in wrap(line, width - 2)]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for line in zip_longest(*texts, fillvalue=""):
        cut = zip(line, widths, strict=True)
        yield f"|{'|'.join(f' {one}'.ljust(width) for one, width in cut)}|"


def main() -> int:
    """Print every package that a contract holds."""
    for one in contracts():
        if one["type"] == "layers":
            for package in one.get("containers", [HOUSE]):
                print(f"{package}:", *drawing(package), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
