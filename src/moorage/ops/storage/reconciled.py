# SPDX-License-Identifier: BSD-2-Clause
"""What ``gnt-storage reconcile`` reports, and the steps of its plan."""

from msgspec import Struct

from moorage.model.values import Scalar

QUARANTINE, SUSPEND, DETACH = "quarantine", "suspend", "detach"
"""A volume becomes a disk in quarantine; a disk is quarantined; a node lets go."""


class Repair(Struct, frozen=True, kw_only=True):
    """One step of the plan.

    Attributes
    ----------
    do
        ``quarantine``, ``suspend`` or ``detach``.
    what
        What a person reads.
    disk
        Uuid of the disk, where there is one.
    node
        Name of the node that sees the volume, or holds the disk.
    volume
        Template and identity of the volume, every part as text.
    known_as
        What storage scripts knew the volume as, and are to know it as again.
    """

    do: str
    what: str = ""
    disk: str = ""
    node: str = ""
    volume: tuple[str, ...] = ()
    known_as: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it the same step in a later plan."""
        return self.do, self.disk, self.node if self.disk else "", self.volume


class Storage(Struct, frozen=True, kw_only=True):
    """A storage unit that was asked for its volumes.

    Attributes
    ----------
    node
        Name of the node that was asked.
    template, unit, params
        What it is.
    used
        Whether any disk is there.
    volumes
        How many it has.
    problem
        Why it told none.
    """

    node: str
    template: str
    unit: str
    params: dict[str, Scalar]
    used: bool
    volumes: int
    problem: str


class SeenVolume(Struct, frozen=True, kw_only=True):
    """A volume that a storage told of.

    Attributes
    ----------
    state, why
        What it is to the cluster, and the reason where one is known.
    template, logical_id, volume
        Its identity, and what a person reads of it.
    size
        In MiB; None where its storage does not tell.
    note
        What its storage has noted with it: the uuid of its disk.
    nodes
        Names of the nodes that see it.
    disk, name
        The disk that is, or was last, in it.
    """

    state: str
    template: str
    logical_id: list[Scalar]
    volume: str
    size: int | None
    note: str
    nodes: list[str]
    disk: str
    name: str | None
    why: str


class MissingVolume(Struct, frozen=True, kw_only=True):
    """A disk whose volume is nowhere.

    Attributes
    ----------
    disk, name
        Uuid, and name if it has one.
    volume
        What a person reads.
    nodes
        Names of the nodes that should see it.
    quarantine
        Why it is in quarantine already, if it is.
    """

    disk: str
    name: str | None
    volume: str
    nodes: list[str]
    quarantine: str | None


class AttachedStill(Struct, frozen=True, kw_only=True):
    """A disk that a node holds and should not.

    Attributes
    ----------
    disk, name
        Uuid as the node knows it, and name if it has one.
    node, path, epoch
        Where, and by which attachment.
    why
        What is wrong.
    used
        Whether a guest has it.
    """

    disk: str
    name: str | None
    node: str
    path: str | None
    epoch: int
    why: str
    used: bool


class Reconciled(Struct, frozen=True, kw_only=True):
    """What storage and records say of each other.

    Attributes
    ----------
    storages
        What was asked.
    counts
        Volumes by their state, and how many are missing.
    volumes
        All of them, or those that are not as they should be.
    missing, attached
        Disks without a volume, and disks that nodes hold and should not.
    doubts
        Sentences on what could not be compared.
    unasked
        Providers that could tell of volumes, and were not asked.
    plan
        What would repair it, in order.
    """

    storages: list[Storage]
    counts: dict[str, int]
    volumes: list[SeenVolume]
    missing: list[MissingVolume]
    attached: list[AttachedStill]
    doubts: list[str]
    unasked: list[str]
    plan: list[Repair]
