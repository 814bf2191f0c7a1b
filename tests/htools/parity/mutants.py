# SPDX-License-Identifier: BSD-2-Clause
"""Good input with one thing wrong, for fuzzing: files, lines, cells, JSON values."""

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any, Final

_NUMBER: Final = re.compile(r"(?<=[|,;])-?\d+(\.\d+)?(?=[|,;\n])")
WORDS: Final = (
    *("", "-", "?", "0", "-1", "-0", "1.5", "1e3", "1e999", "NaN", "nan", "Infinity"),
    *("9" * 17, "9" * 30, "9" * 5000, str(2**31), str(2**44), str(2**44 + 1), "0x10"),
    *("Y", "N", "M", "drbd", "plain", "ext", "running", "ADMIN_offline", "preferred"),
    *("node000.example.com", "inst0000.example.com", "uuid-00", "a,b", ";", ",,,;,"),
    *("\0", "\r", "\t", "é", "\u2028", "\x85", "\uff11", "x" * 5000, "a b", "'", "\\"),
)
"""What stands where something else should."""
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 1.5, 2**31, 2**44, 2**44 + 1, 2**63, 10**400),
    *(
        float("nan"),
        float("inf"),
        1e308,
        1e-308,
        -0.0,
        [],
        {},
        [[]],
        [None],
        [1],
        {"a": 1},
    ),
    *("", "x", "1", "a|b", "a\nb", "\0", "\ud800", "é", "x" * 5000, "drbd", "plain"),
    *(
        "node000.example.com",
        "inst0000.example.com",
        "uuid-00",
        ["node000.example.com"],
    ),
)


def of_lines(draw: Random, source: str) -> str:
    """Return a text with a cell, a line, or some characters changed."""
    kind = draw.randrange(8)
    if kind < 4:
        return _with_cell(draw, source)
    lines = source.split("\n")
    at = draw.randrange(len(lines))
    if kind == 4:
        lines[at:at] = draw.choices(lines, k=draw.randint(1, 3))
    elif kind == 5:
        del lines[at : at + draw.randint(1, 4)]
    elif kind == 6:
        return source[: draw.randrange(len(source))]
    else:
        return of_characters(draw, source)
    return "\n".join(lines)


def _with_cell(draw: Random, source: str) -> str:
    lines = source.split("\n")
    at = draw.choice([at for at, line in enumerate(lines) if line])
    mark = draw.choice([mark for mark in "|,; " if mark in lines[at]] or ["|"])
    cells = lines[at].split(mark)
    cells[draw.randrange(len(cells))] = draw.choice(WORDS)
    lines[at] = mark.join(cells)
    return "\n".join(lines)


def of_characters(draw: Random, source: str) -> str:
    """Return a text with some characters put in, taken out, or repeated."""
    at = draw.randrange(len(source) + 1)
    end = at + draw.randint(0, 30)
    noise = "".join(
        chr(draw.choice((draw.randrange(128), draw.randrange(0x2FF))))
        for _ in range(draw.randint(0, 9))
    )
    return source[:at] + draw.choice((noise, source[at:end] * 2)) + source[end:]


def of_json(draw: Random, data: Any) -> str:
    """Return JSON text with one value changed, lost, repeated, or cut short."""
    source = json.dumps(data)
    kind = draw.randrange(10)
    if kind == 0:
        return source[: draw.randrange(len(source))]
    if kind == 1:
        return of_characters(draw, source)
    copy = json.loads(source)
    holder, key = draw.choice(list(_places(copy)))
    if kind == 2:
        del holder[key]
    elif kind == 3 and isinstance(holder, dict):
        holder[draw.choice(["", "|", "\n", "x" * 300, key + "x"])] = holder.pop(key)
    elif kind == 4 and isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[key] = draw.choice(VALUES)
    return json.dumps(copy, indent=draw.choice((None, 1)))


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every list or object with each of its keys."""
    keys = list(data) if isinstance(data, dict) else range(len(data))
    for key in keys:
        yield data, key
        if isinstance(data[key], dict | list):
            yield from _places(data[key])


NUMBERS: Final = (
    *("0", "0", "1", "2", "5", "1000", "100000", str(2**31), str(2**44), "-1"),
    *(str(-(2**44)), "0.5", "1e-6", "1e9", "0.0", str(2**44 - 1)),
)


def of_numbers(draw: Random, source: str) -> str:
    """Return a text with up to four numbers changed to others that may be legal."""
    for _ in range(draw.randint(1, 4)):
        found = draw.choice(list(_NUMBER.finditer(source)))
        source = source[: found.start()] + draw.choice(NUMBERS) + source[found.end() :]
    return source
