# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that look at a node, and those between it and its master."""

from msgspec import Struct

from moorage.model import (
    Accelerator,
    Device,
    ForeignGuest,
    GuestState,
    NodeFacts,
    Os,
    Place,
    Provider,
)
from moorage.model.processors import Processor, ProcessorModels

from .verb import AtMaster, Reading, Verb

_ALL_GUESTS = 4 << 20
"""Bytes: those of a node with ten thousand guests are three quarters of it, and so are
those of 1,700 guests that have as many disks and cards as there can be."""


class GetFacts(Reading[NodeFacts], frozen=True, kw_only=True, tag="facts"):
    """Return all that there is to know of this node.

    Attributes
    ----------
    places
        Where to look for storage units whose room is to be told.
    brief
        Leave out guests and held disks: they may be thousands.
    """

    long = True
    places: tuple[Place, ...] = ()
    brief: bool = False

    @property
    def most(self) -> int:
        """Bytes of the longest line of an answer."""
        return 1 << 20 if self.brief else _ALL_GUESTS


class ListGuests(Reading[list[GuestState]], frozen=True, tag="guests"):
    """Return every guest that has a process here."""

    lapsed = True  # or a node that was off for a year could not be taken back
    long = True

    @property
    def most(self) -> int:
        """Bytes of the longest line of an answer."""
        return _ALL_GUESTS


class ListForeignGuests(Reading[list[ForeignGuest]], frozen=True, tag="guests.foreign"):
    """Return the guests here whose processes Ganeti started, taken over or not."""

    long = True

    @property
    def most(self) -> int:
        """Bytes of the longest line of an answer."""
        return _ALL_GUESTS


class GetGuest(Reading[GuestState | None], frozen=True, kw_only=True, tag="guest"):
    """Return one guest, if it has a process here."""

    uuid: str


class ListProviders(Reading[list[Provider]], frozen=True, tag="providers"):
    """Return every entry of the ExtStorage search path."""

    long = True


class ListSystems(Reading[list[Os]], frozen=True, tag="oses"):
    """Return every entry of the search path of OS definitions."""

    long = True


class Peer(Struct, frozen=True, kw_only=True):
    """Another node: its name, and where its agent may listen."""

    name: str
    address: str
    port: int


class ReachNodes(Reading[dict[str, str]], frozen=True, kw_only=True, tag="nodes.reach"):
    """Return why other nodes are not reached, by their names; none for those that are.

    A machine is reached that says that nobody listens there, too.

    Attributes
    ----------
    peers
        Those to try, all at once.
    source
        Address of this node to come from; empty for any.
    """

    peers: tuple[Peer, ...]
    source: str = ""


class GetDevices(Reading[list[Device]], frozen=True, kw_only=True, tag="devices"):
    """Return what there is at some paths, in their order.

    Attributes
    ----------
    paths
        Of devices and files.
    """

    long = True
    paths: tuple[str, ...] = ()


class MeasureDisks(
    Reading[list[Device]], frozen=True, kw_only=True, tag="disks.measure"
):
    """Return what some disks are here, in their order, be it behind a URI alone.

    Attributes
    ----------
    disks
        Their uuids; one that is not attached here is of no kind.
    hypervisor
        Whose URI leads to them, where they have no path.
    """

    long = True
    limit = 60.0
    disks: tuple[str, ...]
    hypervisor: str


class TryAccelerator(Verb[Accelerator | None], frozen=True, tag="accelerator"):
    """Find out again what executes guests here; it may boot a kernel, and take long."""


class TryProcessor(
    Reading[Processor | None], frozen=True, kw_only=True, tag="processor"
):
    """Return what the processors of a guest would be here; None where none has any.

    Attributes
    ----------
    cpu_type, accel, kvm_flag
        Hypervisor parameters of kvm.
    """

    limit = 60.0
    cpu_type: str
    accel: str = "auto"
    kvm_flag: str = ""


class ListProcessors(Reading[ProcessorModels | None], frozen=True, tag="processors"):
    """Return the models of processors that guests can have here."""

    limit = 60.0


class LeaveCluster(Verb[None], frozen=True, tag="node.leave"):
    """Leave the cluster: its certificates are forgotten, and the door opens again."""


class ListOldObjects(Reading[tuple[str, ...]], frozen=True, tag="objects.old"):
    """Return the uuids of what this node fences, or has made, for more than an hour."""

    long = True


class ForgetObjects(Verb[None], frozen=True, kw_only=True, tag="objects.forget"):
    """Forget what is left of old objects that the cluster does not know any more.

    Attributes
    ----------
    objects
        Their uuids.
    """

    objects: tuple[str, ...] = ()


class KillPrograms(Verb[int], frozen=True, kw_only=True, tag="script.kill"):
    """End the programs that earlier steps run on some objects; return how many.

    Attributes
    ----------
    objects
        Their uuids.
    """

    objects: tuple[str, ...] = ()


class Pause(Verb[None], frozen=True, kw_only=True, tag="delay"):
    """Wait; nobody else waits for it.

    Attributes
    ----------
    seconds
        How long to wait.
    """

    seconds: float = 0.0


class EnrolNode(AtMaster[NodeFacts], frozen=True, kw_only=True, tag="node.enrol"):
    """Let a new node in, which serves nothing but its door yet.

    Attributes
    ----------
    token
        The node's invitation, as text; the journal forgets it when the job has ended.
    """

    token: str


class ExpelNode(AtMaster[None], frozen=True, tag="node.expel"):
    """Take back that a node was let in, however far it came."""
