# SPDX-License-Identifier: BSD-2-Clause
"""Recorded files with random defects: refused or told of, and never a traceback."""

import json
import random
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from ganetis_files import Ganeti
from moorage.config_data import KNOWN, NEWEST, Version, read, upgrade
from moorage.config_data.verify import complaints
from moorage.errors import BadInput
from support.sampling import SEED

pytestmark = pytest.mark.oracle
RECORDED = [str(one) for one in KNOWN if one < Version(3, 0)]
DEFECTS = 60
OF_OTHER_TYPES: tuple[Any, ...] = (
    *(None, True, -1, 0.5, 2**80, "", "mars", "\x00", [], {}, [[]], {"a": {"b": [1]}}),
    ["x", {"y": None}],
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a document, with each key or index in it."""
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in list(keys):
            yield value, key
            yield from places(value[key])


def damage(document: Any, dice: random.Random) -> None:
    """Make one defect: missing, of another type, dangling, or what another has."""
    everywhere = list(places(document))
    holder, key = dice.choice(everywhere)
    kind = dice.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = dice.choice(OF_OTHER_TYPES)
    elif kind == 2:
        other, place = dice.choice(everywhere)
        holder[key] = json.loads(json.dumps(other[place]))
    elif isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder.append(holder[key])


def outcome(data: bytes) -> str:
    """Return why a file is refused, or all that is told of it."""
    numbers = count()
    try:
        document, notes = upgrade(read(data), NEWEST, lambda: f"new-{next(numbers)}")
    except BadInput as refused:
        return refused.message
    found = list(complaints(document))
    assert all(one.message and one.code and one.kind for one in found)
    return "; ".join([*notes, *(one.message for one in found)])


@pytest.mark.parametrize("version", RECORDED)
def test_a_random_defect(ganeti: Ganeti, version: str) -> None:
    dice = random.Random(f"{SEED} {version}")  # noqa: S311
    data = ganeti.recorded(version)
    for _ in range(DEFECTS):
        document = json.loads(data)
        for _ in range(dice.randint(1, 3)):
            damage(document, dice)
        outcome(json.dumps(document).encode())


@pytest.mark.parametrize("version", RECORDED)
def test_a_file_that_is_cut_off(ganeti: Ganeti, version: str) -> None:
    data = ganeti.recorded(version).rstrip()
    at = random.Random(f"{SEED} {version}").randrange(len(data) - 1)  # noqa: S311
    assert outcome(data[:at]).startswith("it is no JSON")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"\xff", "it is no JSON"),
        (b"NaN", "it is no JSON"),
        (b"1e999", "it is no JSON"),
        (b"9" * 5000, "it is no"),
        (b"[" * 200 + b"]" * 200, "nested too deep"),
        (b"[" * 100_000_000, "nested too deep"),
    ],
    ids=["not UTF-8", "NaN", "infinite", "huge", "nested", "100 MB of nesting"],
)
def test_what_no_file_holds(ganeti: Ganeti, value: bytes, why: str) -> None:
    data = ganeti.recorded("2.16")
    at = data.index(b'"serial_no"')
    assert why in outcome(data[:at] + b'"more": ' + value + b", " + data[at:])
