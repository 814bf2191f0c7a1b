# SPDX-License-Identifier: BSD-2-Clause
"""The disk templates, Ganeti's nine: what is true of each, whoever asks.

Storage, the planner and the command line read it here. What a template *can* do, its
class declares.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Mirror(StrEnum):
    """Who keeps a second copy of the data."""

    NONE = "none"
    INTERNAL = "internal"
    """The cluster does (DRBD): a secondary node is needed."""
    EXTERNAL = "external"
    """The storage does, or it is shared: every node that reaches it may run it."""


class Reach(StrEnum):
    """Where a volume can be used: its mobility domain."""

    NODE = "node"
    PAIR = "pair"
    GROUP = "group"
    """Every node of the groups that see the storage."""


_REACH = {
    Mirror.NONE: Reach.NODE,
    Mirror.INTERNAL: Reach.PAIR,
    Mirror.EXTERNAL: Reach.GROUP,
}


class Parameter(NamedTuple):
    """A parameter of a disk.

    Attributes
    ----------
    kind
        ``bool``, ``int`` for a whole number, or ``str`` for text.
    fixed
        Whether a disk keeps it for life: it says where the data is, or how it is
        reached.
    live
        Whether a preset of the group or the cluster holds for disks that are there,
        too, and is told to those in use at once.
    bounds
        The least and the largest number.
    """

    name: str
    kind: type[bool] | type[int] | type[str]
    meaning: str
    fixed: bool = False
    live: bool = False
    bounds: tuple[int, int] = (1, (1 << 31) - 1)


class TemplateFacts(NamedTuple):
    """What is true of a template.

    Attributes
    ----------
    rank
        Place in the instance policy of a new cluster, from 1; 0 for a template that
        this version does not drive.
    spellings
        What else it is called, in files of Ganeti's tools.
    has_disks
        Whether its instances have disks at all.
    unit
        The type of its storage units; empty if it has none.
    volume
        The template of its volumes, whose units have the room; empty for itself.
    metadata
        What each copy takes of its unit besides the data, MiB.
    pooled
        Whether a disk may be in any unit of that type: it says itself in which.
    node_disk
        Whether a node's total of disk space counts for it.
    spindles
        Whether its disks can have physical volumes for themselves.
    by_hand
        Whether its devices are set up anew on each node, by somebody else.
    settings
        The fields of the cluster that it needs; of image files, their directory.
    provided
        Whether scripts of a provider drive it, which may go by the names of disks.
    parameters
        What its disks take; a provider's own ones come on top.
    identity
        What hooks call the parts of a volume's identity, as many as they get.
    """

    name: str
    mirror: Mirror
    rank: int = 0
    spellings: tuple[str, ...] = ()
    has_disks: bool = True
    unit: str = ""
    volume: str = ""
    metadata: int = 0
    pooled: bool = False
    node_disk: bool = False
    spindles: bool = False
    by_hand: bool = False
    settings: tuple[str, ...] = ()
    provided: bool = False
    parameters: tuple[Parameter, ...] = ()
    identity: tuple[str, ...] = ("DRIVER", "ID")

    @property
    def reach(self) -> Reach:
        """Where a volume can be used: who mirrors its data decides."""
        return _REACH[self.mirror]

    @property
    def stored_as(self) -> str:
        """The template of its volumes, by which nodes tell the room of their units."""
        return self.volume or self.name

    @property
    def live(self) -> frozenset[str]:
        """The names of parameters whose presets hold for disks that are there, too."""
        return frozenset(one.name for one in self.parameters if one.live)

    @property
    def movable(self) -> bool:
        """Whether instances with such disks get to another node with their data."""
        return self.has_disks and self.mirror is not Mirror.NONE


PREALLOCATE = Parameter(
    "preallocate", bool, "Whether all its blocks are allocated when it is made."
)
DIRECTORY = Parameter(
    "directory",
    str,
    "The directory of images; the cluster's if it names none.",
    fixed=True,
)
ACCESS = Parameter(
    "access",
    str,
    "``kernelspace``, or ``userspace`` to reach it by its URI.",
    fixed=True,
)
VG = Parameter(
    "vg", str, "The volume group; the cluster's if it names none.", fixed=True
)
LIMITS = (
    Parameter(
        "total_iops_sec",
        int,
        "Requests a second that its guest may make of it; 0 for no limit.",
        live=True,
        bounds=(0, 1 << 31),
    ),
    Parameter(
        "total_bytes_sec",
        int,
        "Bytes a second that its guest may read and write; 0 for no limit.",
        live=True,
        bounds=(0, 1 << 40),
    ),
)
"""What a guest may ask of a disk, of whatever template: its hypervisor sees to it."""
METADATA = 128
"""What DRBD keeps beside each copy, MiB."""
_GIB = 1 << 22
"""KiB a second: the fastest that DRBD can be told, four GiB a second."""
_DRBD = (
    VG,
    Parameter("metavg", str, "The volume group of DRBD's metadata.", fixed=True),
    Parameter(
        "data-stripes",
        int,
        "Over how many physical volumes the blocks of its data are spread.",
        fixed=True,
    ),
    Parameter("meta-stripes", int, "The same of its metadata.", fixed=True),
    Parameter(
        "resync-rate",
        int,
        "KiB a second at which a copy is brought up to date.",
        live=True,
        bounds=(1, _GIB),
    ),
    Parameter(
        "dynamic-resync",
        bool,
        "Whether DRBD finds that rate by itself, as the ``c-`` parameters say.",
        live=True,
    ),
    Parameter(
        "c-plan-ahead",
        int,
        "How far it plans, in tenths of a second.",
        live=True,
        bounds=(1, 300),
    ),
    Parameter(
        "c-fill-target",
        int,
        "How much is to be on its way, in sectors; with 0 ``c-delay-target`` counts.",
        live=True,
        bounds=(0, 1 << 20),
    ),
    Parameter(
        "c-delay-target",
        int,
        "How long it is to be on its way, in tenths of a second.",
        live=True,
        bounds=(1, 100),
    ),
    Parameter(
        "c-max-rate", int, "The most, in KiB a second.", live=True, bounds=(250, _GIB)
    ),
    Parameter(
        "c-min-rate",
        int,
        "KiB a second that a busy disk leaves it.",
        live=True,
        bounds=(0, _GIB),
    ),
    Parameter(
        "disk-barriers",
        str,
        "What is *not* used to keep writes in order: ``n`` for nothing, or some of "
        "``b`` (barriers), ``f`` (flushes) and ``d`` (draining).",
        live=True,
    ),
    Parameter(
        "meta-barriers",
        bool,
        "Whether writes of metadata are *not* flushed.",
        live=True,
    ),
    Parameter(
        "disk-custom", str, "More options of ``drbdsetup disk-options``.", live=True
    ),
    Parameter(
        "net-custom", str, "More options of ``drbdsetup net-options``.", live=True
    ),
    Parameter(
        "protocol",
        str,
        "``C``: a write is done when it is on both disks.",
        live=True,
    ),
    *LIMITS,
)

_TABLE = (
    TemplateFacts(
        name="diskless",
        mirror=Mirror.EXTERNAL,
        rank=5,
        has_disks=False,
    ),
    TemplateFacts(
        name="file",
        mirror=Mirror.NONE,
        rank=4,
        unit="file",
        settings=("file_storage_dir",),
        parameters=(PREALLOCATE, DIRECTORY, *LIMITS),
    ),
    TemplateFacts(
        name="sharedfile",
        mirror=Mirror.EXTERNAL,
        rank=1,
        unit="sharedfile",
        settings=("shared_file_storage_dir",),
        parameters=(PREALLOCATE, DIRECTORY, *LIMITS),
    ),
    TemplateFacts(
        name="plain",
        identity=("VG", "ID"),
        mirror=Mirror.NONE,
        rank=6,
        unit="lvm-vg",
        node_disk=True,
        spindles=True,
        settings=("volume_group_name",),
        parameters=(
            VG,
            Parameter(
                "stripes", int, "Over how many physical volumes its blocks are spread."
            ),
            *LIMITS,
        ),
    ),
    TemplateFacts(
        name="blockdev",
        mirror=Mirror.EXTERNAL,
        rank=3,
        by_hand=True,
        parameters=LIMITS,
    ),
    TemplateFacts(
        name="drbd",
        identity=("PNODE", "SNODE", "PORT", "PMINOR", "SMINOR"),
        mirror=Mirror.INTERNAL,
        rank=8,
        spellings=("drbd8",),
        unit="drbd8",
        volume="plain",
        metadata=METADATA,
        node_disk=True,
        settings=("volume_group_name",),
        parameters=_DRBD,
    ),
    TemplateFacts(
        name="rbd",
        mirror=Mirror.EXTERNAL,
        rank=7,
        unit="rbd",
        pooled=True,
        parameters=(
            Parameter(
                "pool",
                str,
                "The Ceph pool of its image.",
                fixed=True,
            ),
            ACCESS,
            Parameter(
                "user-id", str, "The client of Ceph's that nodes are.", fixed=True
            ),
            Parameter(
                "conf", str, "Ceph's configuration file on every node.", fixed=True
            ),
            *LIMITS,
        ),
    ),
    TemplateFacts(
        name="ext",
        identity=("PROVIDER", "ID"),
        mirror=Mirror.EXTERNAL,
        rank=2,
        provided=True,
        unit="ext",
        pooled=True,
        parameters=(
            Parameter(
                "provider",
                str,
                "The ExtStorage provider: it must be named.",
                fixed=True,
            ),
            ACCESS,
            *LIMITS,
        ),
    ),
    TemplateFacts(
        name="gluster",
        mirror=Mirror.EXTERNAL,
        rank=9,
        unit="gluster",
        pooled=True,
        settings=("gluster_storage_dir",),
        parameters=(
            Parameter("host", str, "A server of the volume.", fixed=True),
            Parameter("port", int, "Its port.", fixed=True),
            Parameter("volume", str, "The volume's name.", fixed=True),
            PREALLOCATE,
            ACCESS,
            *LIMITS,
        ),
    ),
)

LIMITED = tuple(one.name for one in LIMITS)
"""The names of the limits."""

FACTS: dict[str, TemplateFacts] = {one.name: one for one in _TABLE}
"""Every template by its name, in Ganeti's order."""

IN_UNITS: dict[str, TemplateFacts] = {one.unit: one for one in _TABLE if one.unit}
"""The template whose disks are in a type of storage units, by that type."""

PROVIDED: str = next(
    one.name for one in _TABLE if any(it.name == "provider" for it in one.parameters)
)
"""The template of disks of a provider: who names one need not name it."""


def sharing(kind: str) -> tuple[str, ...]:
    """Return the types of units that have one room with a type's, itself first.

    A volume group is a unit for plain volumes and one for mirrored ones.

    >>> sharing("drbd8"), sharing("ext")
    (('drbd8', 'lvm-vg'), ('ext',))
    """
    facts = IN_UNITS.get(kind)
    if facts is None:
        return (kind,)
    found = (one.unit for one in IN_UNITS.values() if one.stored_as == facts.stored_as)
    return (kind, *(one for one in found if one != kind))


def limits(params: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits of a disk that has some parameters, without those of 0.

    A provider's disk of old may have another word by that name: no number, no limit.

    >>> limits({"provider": "san", "total_iops_sec": "500", "total_bytes_sec": 0})
    {'total_iops_sec': 500}
    >>> limits({"provider": "san", "total_iops_sec": "fast"})
    {}
    """
    given = {name: str(params[name]) for name in LIMITED if name in params}
    numbers = {name: one for name, one in given.items() if one.isascii()}
    found = {name: int(one) for name, one in numbers.items() if one.isdecimal()}
    return {name: limit for name, limit in found.items() if limit}


def driven() -> list[str]:
    """Return the templates that this version drives, best first."""
    found = [one for one in FACTS.values() if one.rank]
    return [one.name for one in sorted(found, key=lambda one: one.rank)]


def standing_for(names: Iterable[str]) -> str:
    """Return the template that an instance counts for whose disks have several.

    It moves as one where all of them can: anywhere if they are on shared storage, and
    to its secondary node if some have their second copy there. Else it stays.
    """
    found = [FACTS[name] for name in names]
    ranked = [FACTS[name] for name in driven()]
    if not found or not all(one.movable for one in found):
        # What a node's own volumes are asked for is asked for the others' sake, too.
        ranked.sort(key=lambda one: not (one in found and one.spindles))
        return next(one.name for one in ranked if one.mirror is Mirror.NONE)
    internal = [one.name for one in found if one.mirror is Mirror.INTERNAL]
    return internal[0] if internal else next(one.name for one in ranked if one.pooled)
