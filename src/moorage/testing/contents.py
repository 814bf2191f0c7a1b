# SPDX-License-Identifier: BSD-2-Clause
"""What is in simulated volumes of whatever kind, and how it gets to another one."""

import re

from moorage.storage import Output

from .arguments import Records
from .stored import Stored

_DRBD = re.compile(r"/dev/drbd(\d+)")


def place(san: Stored, node: str, path: str) -> tuple[Records, str] | None:
    """Return where the record of a volume, file or device is; None if it is nowhere.

    Parameters
    ----------
    path
        As a program or a guest's QEMU is given it, or a volume's name.
    """
    mirror = _DRBD.fullmatch(path)
    if mirror:
        found = san.mirrors.get(f"{node} {mirror[1]}")
        return (san.logical, str(found["data"])) if found else None
    places: tuple[tuple[Records, str], ...] = (
        (san.files, san.key(node, path)),
        (san.devices, path),
        (san.logical, f"{node} {path.removeprefix('/dev/')}"),
        (san.volumes, san.volume_at(path)),
    )
    return next((one for one in places if one[1] in one[0]), None)


def read(san: Stored, node: str, path: str) -> str:
    """Return what a volume holds; empty for one that is not there."""
    found = place(san, node, path)
    return str(found[0][found[1]].get("data", "")) if found else ""


def copied(san: Stored, node: str, source: str, target: str) -> Output:
    """Copy what one volume holds to another, as qemu-img does on a node."""
    old, new = place(san, node, source), place(san, node, target)
    if old is None or new is None:
        return Output(f"{target if old else source}: no such file", 1)
    sizes = [san.device(node, path).size for path in (source, target)]
    if all(sizes) and sizes[1] < sizes[0]:
        return Output("output file is smaller than input file", 1)
    data = str(old[0][old[1]].get("data", ""))
    mirror = _DRBD.fullmatch(target)
    if mirror:
        san.drbd.write(node, int(mirror[1]), data)
    else:
        records, key = new
        records[key] = records[key] | {"data": data}
    return Output()
