# SPDX-License-Identifier: BSD-2-Clause
"""Empty clusters from a few numbers: ``policy,nodes,disk,ram,cpu[,spindles]``."""

from collections.abc import Sequence
from typing import Final

from moorage.errors import BadInput
from moorage.htools.constants import ALLOC_POLICIES
from moorage.htools.fleet import Fleet, Group, NodeRow
from moorage.htools.formats.excerpt import brief
from moorage.units import LARGEST

MOST_NODES: Final = 100_000
_SHORT: Final = {"p": "preferred", "a": "last_resort", "u": "unallocable"}
_UNITS: Final = {
    "": 1.0,
    "m": 1.0,
    "mib": 1.0,
    "g": 1024.0,
    "gib": 1024.0,
    "t": 1024.0**2,
    "tib": 1024.0**2,
    "M": 1e6 / 2**20,
    "mb": 1e6 / 2**20,
    "G": 1e9 / 2**20,
    "gb": 1e9 / 2**20,
    "T": 1e12 / 2**20,
    "tb": 1e12 / 2**20,
}


def size(text: str) -> int:
    """Return a size in MiB; ``g`` is 1024 MiB, ``G`` and ``gb`` a billion bytes.

    >>> size("100"), size("2g"), size("10gb")
    (100, 2048, 9536)
    """
    digits = len(text) - len(text.lstrip("0123456789"))
    unit = text[digits:].strip()
    factor = _UNITS.get(unit, _UNITS.get(unit.lower()))
    if not digits or digits > 15 or factor is None:
        raise BadInput(f"{brief(text)} is not a size", hint="write 512m, 100g or 2t")
    found = int(int(text[:digits]) * factor)
    if found > LARGEST:
        raise BadInput(f"{brief(text)} is larger than 16 EiB")
    return found


def parse(specs: Sequence[str]) -> Fleet:
    """Return the empty cluster that one or more groups make, the last one first.

    Raises
    ------
    BadInput
        Naming the spec that is off.
    """
    groups: list[Group] = []
    nodes: list[NodeRow] = []
    for number, spec in enumerate(reversed(specs), 1):
        group, rows = _group(number, spec)
        groups.append(group)
        nodes += rows
    return Fleet(tuple(groups), tuple(nodes), (), first=1)


def _group(number: int, spec: str) -> tuple[Group, list[NodeRow]]:
    parts = spec.split(",")
    if not 5 <= len(parts) <= 7:
        raise BadInput(
            f"{brief(spec)} is not policy,nodes,disk,ram,cpu[,spindles[,exclusive]]"
        )
    policy = _SHORT.get(parts[0], parts[0])
    if policy not in ALLOC_POLICIES:
        raise BadInput(f"{brief(parts[0])} in {brief(spec)} is no allocation policy")
    count, cpus, spindles = (
        _count(spec, text) for text in (parts[1], parts[4], [*parts, "1"][5])
    )
    if count > MOST_NODES:
        raise BadInput(f"{brief(spec)} has more than {MOST_NODES} nodes")
    exclusive = len(parts) == 7 and parts[6] == "Y"
    disk, mem = size(parts[2]), size(parts[3])
    group = Group(f"group-{number:02d}", f"fake-uuid-{number:02d}", policy)
    return group, [
        NodeRow(
            name=f"node-{number:02d}-{at:03d}",
            group=number - 1,
            mem_total=float(mem),
            mem_free=mem,
            disk_total=float(disk),
            disk_free=disk,
            cpus=float(cpus),
            master=number == 1 and at == 1,
            spindles=spindles,
            spindles_free=spindles if exclusive else 0,
            exclusive=exclusive,
        )
        for at in range(1, count + 1)
    ]


def _count(spec: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise BadInput(f"{brief(text)} in {brief(spec)} is not a count")
    return int(text)
