# SPDX-License-Identifier: BSD-2-Clause
"""What ``gnt-instance info`` is told of an instance: the types of the answer."""

from msgspec import Struct

from moorage.model import MirrorState
from moorage.model.values import Scalar, Value


class BlockStatus(Struct, frozen=True, array_like=True):
    """A device on a node: a list of seven, as in Ganeti.

    Attributes
    ----------
    path
        Of the device, or the URI that a guest opens.
    major, minor
        Its numbers, of a mirror alone.
    sync_percent, estimated_time
        How much of a mirror is the same again, and how many seconds the rest takes.
    is_degraded
        Whether the copies of a mirror differ.
    ldisk_status
        1 for a good one, 4 for one that is not there.
    """

    path: str | None
    major: int | None
    minor: int | None
    sync_percent: float | None
    estimated_time: int | None
    is_degraded: bool | None
    ldisk_status: int


class ChildVolume(Struct, frozen=True, kw_only=True):
    """A volume that a disk is made of; what nobody asks of it is None."""

    dev_type: str
    logical_id: list[Scalar]
    size: int
    uuid: str
    name: str | None = None
    iv_name: str | None = None
    pstatus: BlockStatus | None = None
    sstatus: BlockStatus | None = None
    children: tuple[()] = ()


class MirrorPair(Struct, frozen=True, kw_only=True):
    """Who keeps the copies of a mirrored disk: names of nodes, DRBD's numbers."""

    primary_node: str
    primary_minor: int
    secondary_node: str
    secondary_minor: int
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
    held, copy
        The disk on the primary node, and its other copy; None where it is not set up,
        or nobody was asked.
    pstatus, sstatus
        The same for Ganeti's clients.
    spindles
        None: nobody counts them.
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
    drbd_info: MirrorPair | None
    behind: str | None
    held: HeldDisk | None
    copy: MirrorCopy | None
    pstatus: BlockStatus | None
    sstatus: BlockStatus | None
    spindles: int | None = None


class NetworkDescription(Struct, frozen=True, kw_only=True):
    """The network of a card."""

    name: str
    uuid: str
    network: str
    gateway: str | None
    network6: str | None
    gateway6: str | None
    mac_prefix: str | None


class CardDescription(Struct, frozen=True, array_like=True):
    """A network card with all its parameters: a list of nine, as in Ganeti.

    Attributes
    ----------
    network, netinfo
        Its network's uuid, and what is known of it.
    """

    name: str | None
    uuid: str
    ip: str | None
    mac: str
    mode: str
    link: str
    vlan: str
    network: str | None
    netinfo: NetworkDescription | None


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
    run_origin
        That Ganeti started its guest, and what follows; only where it did.
    run_memory
        How much of its memory its guest has; only where it has given some back.
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
    run_origin: str | None = None
    run_memory: str | None = None
    pnode: str
    pnode_group_name: str
    pnode_group_uuid: str
    snodes: list[str]
    snodes_group_names: list[str]
    snodes_group_uuids: list[str]
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
