# SPDX-License-Identifier: BSD-2-Clause
"""A drive as QEMU has it: two block nodes and a device, named after the disk.

The upper node is raw, never probed (a guest could write a header that lies); the
lower one is a file, a block device or a network protocol. A drive that gets another
volume while its guest runs has two such stacks for a while, and the other one from then
on. Pure.
"""

import re
from typing import Any, NamedTuple

from moorage.errors import Failed
from moorage.model import hvdisks
from moorage.model.hvparams import Parameters
from moorage.node.hypervisors.base import Drive
from moorage.storage.uri import Node, protocol_node, renamed

from . import slots

_DEVICE = "disk-"
_SERIAL = 20
_NAME = 28
"""Node names have at most 31 characters, a uuid has 32 digits."""


class Stack(NamedTuple):
    """What the two block nodes of a drive are called.

    Attributes
    ----------
    lowers
        The two names that the lower node may have, in turns.
    mark
        What is noted with its descriptors.
    """

    upper: str
    lowers: tuple[str, str]
    mark: str


def stacks(disk: str) -> tuple[Stack, Stack]:
    """Return the stacks of a disk; a guest begins with the first."""
    short = _short(disk)
    return (
        Stack(f"d-{short}", (f"p-{short}", f"q-{short}"), disk),
        Stack(f"e-{short}", (f"r-{short}", f"s-{short}"), f"{disk}+"),
    )


def filter_name(disk: str) -> str:
    """Return the name of the node between a drive and the stacks that it mirrors."""
    return f"m-{_short(disk)}"


def dump_name(disk: str) -> str:
    """Return the name of the node that a copy of the disk is written through."""
    return f"t-{_short(disk)}"


def _short(disk: str) -> str:
    return re.sub("[^0-9A-Za-z]", "", disk)[-_NAME:]


def device_name(disk: str) -> str:
    """Return the id of the disk's device."""
    return _DEVICE + disk


def disk_of(device: str) -> str | None:
    """Return the disk that a device is for; None for a device of another kind."""
    return device.removeprefix(_DEVICE) if device.startswith(_DEVICE) else None


def source(drive: Drive) -> str:
    """Return the path or the URI of the drive's data.

    Raises
    ------
    NotSupported
        If the drive offers kvm neither.
    """
    return drive.where.for_hypervisor("kvm", userspace=drive.userspace)


class Data(NamedTuple):
    """How QEMU reaches a drive's data.

    Attributes
    ----------
    node
        The options of the lowest block node, without its name.
    direct
        Whether the cache of this node can be bypassed.
    """

    node: Node = {}
    direct: bool = True

    @property
    def local(self) -> bool:
        """Whether they are in a file or device of this node."""
        return self.node["driver"] in ("file", "host_device")

    def renamed(self, old: str, new: str) -> "Data":
        """Return the same with another word in the place of one."""
        return self._replace(node=renamed(self.node, {old: new}))


def protocol(drive: Drive) -> Node:
    """Return the options of the lowest block node, as paths and addresses."""
    place = source(drive)
    if place != drive.where.path:
        return protocol_node(place)
    driver = "host_device" if drive.where.block else "file"
    return {"driver": driver, "filename": place}


def lower_node(drive: Drive, data: Data, name: str, given: Parameters) -> Node:
    """Return the options of the lower node."""
    node = {"discard": given.discard, **data.node, "node-name": name}
    if data.local:
        node.setdefault("aio", _aio(data, given))
        node.setdefault("cache", given.cache(direct=data.direct))
    node["read-only"] = drive.mode == "ro"
    return node


def _aio(data: Data, given: Parameters) -> str:
    """Return how a local drive is read and written.

    Raises
    ------
    Failed
        If its file system has no way to bypass the cache, which ``native`` does.
    """
    if given.disk_aio == "native" and not data.direct:
        raise Failed(
            "disk_aio=native bypasses the node's cache, and the file system of "
            f"{data.node.get('filename', 'the disk')} cannot",
            hint="-H disk_aio=threads",
        )
    return given.disk_aio


def upper_node(
    drive: Drive, data: Data, name: str, file: str, given: Parameters
) -> Node:
    """Return the options of the upper node, which lies on the node named `file`."""
    node: Node = {"driver": "raw", "node-name": name, "file": file}
    node |= {"discard": given.discard, "read-only": drive.mode == "ro"}
    if data.local:
        node["cache"] = given.cache(direct=data.direct)
    return node


def grows_by_reopening(drive: Drive) -> bool:
    """Whether QEMU learns of a new size only by a new connection."""
    return bool(protocol(drive)["driver"] == "nbd")


def device(drive: Drive, port: int, given: Parameters) -> dict[str, Any]:
    """Return the options of the drive's device in a port, or in a slot of a pc."""
    kind = given.disk_type if given.is_pc else hvdisks.PARAVIRTUAL
    return {
        "driver": hvdisks.DRIVERS[kind],
        "id": device_name(drive.disk),
        "drive": stacks(drive.disk)[0].upper,
        **(slots.of_a_disk(port, given) if given.is_pc else {"bus": port_name(port)}),
        "serial": drive.disk[:_SERIAL],
        "write-cache": "off" if given.writes_through else "on",
    }


def port_name(port: int) -> str:
    """Return the id of a port that a drive can be plugged into."""
    return f"port{port}"
