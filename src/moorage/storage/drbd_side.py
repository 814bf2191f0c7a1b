# SPDX-License-Identifier: BSD-2-Clause
"""A node's side of a mirrored disk: its number, the other node, its volumes."""

from dataclasses import dataclass

from msgspec.structs import replace

from moorage.errors import Failed
from moorage.model import Disk, MirrorState, Pair, pair_of
from moorage.model.addresses import is_v6, place
from moorage.model.facts import UP_TO_DATE
from moorage.storage.command import Command, Holder, Site
from moorage.storage.drbd_status import Resource

_OLD = "_replaced"
"""What the name of a volume ends with whose copy is being made anew."""


@dataclass(frozen=True, slots=True)
class Side:
    """A mirrored disk as one node sees it."""

    site: Site
    disk: Disk

    @property
    def here(self) -> str:
        """Uuid of this node; `Failed` is raised on one that keeps no copy."""
        names = [one.name for one in self.site.holders[:2]]
        if self.site.node not in names:
            raise Failed(f"node {self.site.node} keeps no copy of the disk")
        return pair_kept(self.disk).nodes[names.index(self.site.node)]

    @property
    def minor(self) -> int:
        """The number of the device here."""
        return pair_kept(self.disk).minor(self.here)

    @property
    def other(self) -> Holder:
        """The node that keeps the other copy."""
        nodes = pair_kept(self.disk).nodes
        return self.site.holders[1 - nodes.index(self.here)]

    @property
    def addresses(self) -> tuple[str, str]:
        """Where this node listens, and where the other one does."""
        pair = pair_kept(self.disk)
        one, other = (_address(at.address, pair.port) for at in self.site.holders)
        return (one, other) if self.here == pair.nodes[0] else (other, one)

    def meta(self, action: str, *more: str) -> Command:
        """Return a command for the metadata of this copy."""
        device = path_of(self.disk.children[1])
        words = ("drbdmeta", "--force", f"{self.minor}", "v08", device, "0", action)
        return Command((*words, *more))

    def check_own(self, resource: Resource) -> None:
        """Raise `Failed` if the disk's number has been given to something else here."""
        if is_of_another(self.disk, resource):
            raise Failed(
                f"minor {self.minor} of node {self.site.node} is in use: it has "
                f"{resource.disk}, and not {path_of(self.disk.children[0])} of disk "
                f"{self.disk.label}",
                disk=self.disk.uuid,
            )

    def check_found(self, resource: Resource) -> None:
        """Raise `Failed` unless a resource is set up as the disk's record says."""
        self.check_own(resource)
        where = self.addresses[1].partition(":")[2]  # without the family
        if not (resource.known and resource.device and resource.disk):
            lack = "it is not set up there"
        elif not resource.peer:
            lack = "it does not seek its other copy"
        elif resource.peer != where:
            lack = f"it seeks its other copy at {resource.peer}, and not at {where}"
        elif resource.two:
            lack = "both nodes may write to it: it is on its way to another one"
        else:
            return
        raise Failed(
            f"disk {self.disk.label} is not on node {self.site.node} as its record "
            f"says: {lack}",
            disk=self.disk.uuid,
            node=self.site.node,
        )

    def check_met(self, state: MirrorState | None) -> None:
        """Raise `Failed` unless the other node is connected."""
        if state and state.connected:
            return
        raise Failed(
            f"node {self.site.node} and node {self.other.name} do not connect their "
            f"copies of disk {self.disk.label}",
            hint="without the other copy: gnt-instance startup --force",
            disk=self.disk.uuid,
        )

    def check_replaced(self, state: MirrorState | None) -> None:
        """Raise `Failed` unless some copy is good besides the one that was replaced."""
        if state is None or UP_TO_DATE not in (state.disk, state.peer_disk):
            disk = self.disk
            raise Failed(
                f"node {self.site.node} keeps an old copy of disk {disk.label}, and "
                "sees no good one",
                hint=f"gnt-disk info {disk.label} shows how the copies are",
                disk=disk.uuid,
            )


def _address(address: str, port: int) -> str:
    """Return where a copy listens, as drbdsetup writes it."""
    return f"{'ipv6' if is_v6(address) else 'ipv4'}:{place(address, port)}"


def pair_kept(disk: Disk) -> Pair:
    """Return who keeps a mirrored disk, and its numbers; raise `Failed` for another."""
    pair = pair_of(disk)
    if pair is None or len(disk.children) != 2:
        raise Failed(f"disk {disk.label} is no mirrored disk", disk=disk.uuid)
    return pair


def is_of_another(disk: Disk, resource: Resource) -> bool:
    """Whether what is set up under a disk's number has other data."""
    return bool(resource.disk) and resource.disk != path_of(disk.children[0])


def aside_of(volume: Disk) -> Disk:
    """Return a volume under the name that it has while it is being replaced."""
    group, name = volume.logical_id
    return replace(volume, logical_id=(group, f"{name}{_OLD}"))


def renamed(volume: Disk, to: Disk) -> Command:
    """Return the command that gives a volume the name of another."""
    return Command(("lvrename", *volume.logical_id, to.logical_id[-1]))


def resource_name(minor: int) -> str:
    """Return what DRBD calls the resource of a device."""
    return f"resource{minor}"


def path_of(volume: Disk) -> str:
    """Return the device of a volume."""
    return "/dev/" + "/".join(map(str, volume.logical_id))


def setup(*words: str, secrets: tuple[str, ...] = ()) -> Command:
    """Return a command for the kernel's DRBD."""
    return Command(("drbdsetup", *words), secrets=secrets)
