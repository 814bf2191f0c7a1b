# SPDX-License-Identifier: BSD-2-Clause
"""What ``gnt-instance info`` is told of an instance: the types of the answer."""

from msgspec import Struct

from moorage.model import MirrorState
from moorage.model.values import Scalar, Value


class ChildVolume(Struct, frozen=True, kw_only=True):
    """A volume that a disk is made of."""

    dev_type: str
    logical_id: list[Scalar]
    size: int
    uuid: str


class MirrorPair(Struct, frozen=True, kw_only=True):
    """Who keeps the copies of a mirrored disk: names of nodes, DRBD's numbers."""

    nodes: list[str]
    minors: list[int]
    port: int


class MirrorCopy(Struct, frozen=True, kw_only=True):
    """The other copy of a mirrored disk, as its node has it."""

    mirror: MirrorState


class HeldDisk(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A disk as the primary node has it.

    Attributes
    ----------
    path, uris
        Where a guest opens it.
    mirror
        Its copy there; only of a mirrored one.
    """

    path: str | None
    uris: dict[str, str]
    mirror: MirrorState | None = None


class DiskDescription(Struct, frozen=True, kw_only=True):
    """A disk of an instance.

    Attributes
    ----------
    size
        In MiB.
    behind
        Name of the node whose copy lacks what was written last.
    pstatus, sstatus
        The disk on the primary node, and its other copy; None where it is not set up,
        or nobody was asked.
    """

    iv_name: str | None
    dev_type: str
    logical_id: list[Scalar]
    size: int
    mode: str
    name: str | None
    uuid: str
    params: dict[str, Value]
    pool: str | None
    epoch: int
    quarantine: str | None
    children: list[ChildVolume]
    pair: MirrorPair | None
    behind: str | None
    pstatus: HeldDisk | None
    sstatus: MirrorCopy | None


class CardDescription(Struct, frozen=True, kw_only=True):
    """A network card, with all its parameters, and its network's uuid and name."""

    uuid: str
    name: str | None
    mac: str
    ip: str | None
    network: str | None
    nicparams: dict[str, Value]
    network_name: str | None


class InstanceDescription(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instance: what is on record, and how it is.

    Attributes
    ----------
    ctime, mtime
        Seconds since the epoch.
    config_state
        ``up``, ``down`` or ``offline``: how it should be.
    run_state
        ``up`` or ``down``; None where nobody can tell, or nobody was asked.
    run_cause, run_remedy
        Why its guest stands still, and what to do; only where it does.
    os_instance, hv_instance, be_instance
        Its own parameters.
    os_actual, hv_actual, be_actual
        The same with all defaults.
    """

    name: str
    uuid: str
    serial_no: int
    ctime: float
    mtime: float
    config_state: str
    run_state: str | None
    run_cause: str | None = None
    run_remedy: str | None = None
    pnode: str
    pnode_group_name: str
    pnode_group_uuid: str
    snodes: list[str]
    os: str
    os_instance: dict[str, Value]
    os_actual: dict[str, Value]
    hypervisor: str
    hv_instance: dict[str, Value]
    hv_actual: dict[str, Value]
    be_instance: dict[str, Value]
    be_actual: dict[str, Value]
    nics: list[CardDescription]
    disk_template: str
    disks: list[DiskDescription]
    disks_active: bool
    network_port: int | None
    tags: tuple[str, ...]
