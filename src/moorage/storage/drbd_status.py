# SPDX-License-Identifier: BSD-2-Clause
"""What DRBD 8.4 says of itself: ``/proc/drbd``, and ``drbdsetup show``."""

import re
from dataclasses import dataclass
from typing import Self

from moorage.model import MirrorState

_DEVICE = re.compile(
    r"^\s*(?P<minor>\d+): cs:(?P<connection>\w+)"
    r"(?: ro:(?P<role>\w+)/\w+)?"
    r"(?: ds:(?P<disk>\w+)/(?P<peer_disk>\w+))?"
)
_PROGRESS = re.compile(r"sync'ed:\s*(?P<percent>[\d.]+)%")
_FINISH = re.compile(r"finish: (\d+):(\d+):(\d+)")
_LOST = "Unconfigured"
"""The connection of a device that is not set up."""


def devices(told: str) -> tuple[MirrorState, ...]:
    """Return the devices that ``/proc/drbd`` tells of, without those not set up."""
    found: list[dict[str, object]] = []
    for line in told.splitlines():
        device = _DEVICE.match(line)
        if device:
            known = {k: v for k, v in device.groupdict().items() if v is not None}
            found.append(known | {"minor": int(device["minor"])})
        elif found:
            found[-1] |= _progress(line)
    states = [MirrorState(**one) for one in found]  # type: ignore[arg-type]
    return tuple(one for one in states if one.connection != _LOST)


def _progress(line: str) -> dict[str, object]:
    percent, finish = _PROGRESS.search(line), _FINISH.search(line)
    found: dict[str, object] = {}
    if percent:
        found["percent"] = float(percent["percent"])
    if finish:
        hours, minutes, seconds = map(int, finish.groups())
        found["seconds"] = (hours * 60 + minutes) * 60 + seconds
    return found


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as it is set up on a node.

    Attributes
    ----------
    known
        Whether there is one at all.
    device
        Whether it has its device.
    disk
        The device with the data; empty if none is attached.
    peer
        Where the other node is sought; empty if it is not.
    two
        Whether both may write.
    """

    known: bool = False
    device: bool = False
    disk: str = ""
    peer: str = ""
    two: bool = False

    @classmethod
    def read(cls, told: str) -> Self:
        """Return the resource that ``drbdsetup show`` tells of."""
        peer = re.search(
            r"_remote_host\s*\{[^}]*?address\s+ipv[46]\s+([^;\s]+)\s*;", told
        )
        disk = re.search(r'^\s*disk\s+"([^"]+)"', told, re.MULTILINE)
        return cls(
            known=bool(re.search(r"^resource\s", told, re.MULTILINE)),
            device=bool(re.search(r"^\s*device\s", told, re.MULTILINE)),
            disk=disk[1] if disk else "",
            peer=peer[1] if peer else "",
            two=bool(re.search(r"allow-two-primaries\s*(yes)?\s*;", told)),
        )
