# SPDX-License-Identifier: BSD-2-Clause
"""An instance of an allocator's message, read fast where it is as masters write it.

A message holds thousands of instances, all alike. What is in any way unusual is left to
`moorage.htools.formats.iallocator`, which reads it with care and says what is wrong; so
nothing is accepted here that would be refused there.
"""

from collections.abc import Mapping
from typing import Any, Final

from moorage.htools.constants import SPELLINGS
from moorage.htools.fleet import Disk, InstanceRow
from moorage.units import MOST

STATES: Final = {"up": "running", "down": "ADMIN_down", "offline": "ADMIN_offline"}
_EXTRAS: Final = ("spindles", "sunit")


def resident(name: str, data: Any, places: Mapping[str, int]) -> InstanceRow | None:  # noqa: ANN401
    """Return the row of an instance; None to have it read with care.

    Parameters
    ----------
    places
        The index of each node, by name.
    """
    try:
        primary, secondary = _homes(data["nodes"], places)
        return InstanceRow(
            name=name,
            mem=_size(data["memory"]),
            disk=_size(data["disk_space_total"]),
            vcpus=_size(data["vcpus"]),
            primary=primary,
            secondary=secondary,
            status=STATES[data["admin_state"]],
            template=SPELLINGS[data["disk_template"]],
            tags=_words(data["tags"]),
            spindle_use=_size(data["spindle_use"]),
            disks=tuple([_disk(disk) for disk in _list(data["disks"])]),
            forthcoming=_flag(data.get("forthcoming")),
            networks=_networks(_list(data["nics"])),
        )
    except (_Unusual, LookupError, TypeError, AttributeError):
        return None


class _Unusual(Exception):
    """Something is not as masters write it."""


def _homes(names: list[str], places: Mapping[str, int]) -> tuple[int, int]:
    """Return primary and secondary of one node, or of two different ones."""
    homes = [places[name] for name in _list(names)]
    if not 0 < len(set(homes)) == len(homes) <= 2:
        raise _Unusual
    return homes[0], homes[1] if len(homes) == 2 else -1


def _size(value: object) -> int:
    if type(value) is not int or not 0 <= value < MOST:
        raise _Unusual
    return value


def _flag(value: object) -> bool:
    if value is not None and value is not True and value is not False:
        raise _Unusual
    return bool(value)


def _list(value: list[Any]) -> list[Any]:
    if type(value) is not list:
        raise _Unusual
    return value


def _words(values: list[str]) -> tuple[str, ...]:
    if not all(type(value) is str and value.isprintable() for value in _list(values)):
        raise _Unusual
    return tuple(values)


def _networks(nics: list[dict[str, Any]]) -> tuple[str, ...]:
    found = [nic.get("network") for nic in nics]
    return _words([network for network in found if network is not None])


def _disk(value: dict[str, Any]) -> Disk:
    if len(value) > 1 and any(value.get(key) is not None for key in _EXTRAS):
        raise _Unusual
    return Disk(_size(value["size"]))
