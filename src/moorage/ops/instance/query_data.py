# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance info``: all that is known of some instances."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from moorage.errors import MoorageError
from moorage.jobs import Operation, Question, View
from moorage.jobs.unread import Moot
from moorage.model import (
    Config,
    Disk,
    Instance,
    MirrorState,
    Network,
    Nic,
    Node,
    hvwhole,
    nicparams,
    pair_of,
    shown_id,
)
from moorage.model.caller import Role
from moorage.model.facts import UP_TO_DATE
from moorage.model.standstill import remedy, told
from moorage.ops.asking import node_tasks
from moorage.ops.guests import osparams
from moorage.ops.guests.foreign import story
from moorage.ops.guests.liveness import runs
from moorage.ops.volumes import behind, copies, pairs

from .description import (
    BlockStatus,
    CardDescription,
    ChildVolume,
    DiskDescription,
    HeldDisk,
    InstanceDescription,
    MirrorCopy,
    MirrorPair,
    NetworkDescription,
)

_DRBD = 147
"""The major number of DRBD's devices."""
_OKAY, _FAULTY = 1, 4


def _run(view: View, instance: Instance) -> dict[str, str]:
    """Return why the guest stands still and what to do, and that Ganeti started it.

    And how much of its memory it has. Nothing of what is as it should be.
    """
    found = view.told(node_tasks.guest_on(instance.primary_node, instance))
    told_of = story(found)
    origin = {"run_origin": told_of} if told_of else {}
    if found and found.holds < found.memory:
        origin["run_memory"] = f"{found.holds} of {found.memory} MiB"
    if found is None or found.state != "paused":
        return origin
    what = remedy(found.cause, instance.name)
    return origin | {"run_cause": told(found.cause), "run_remedy": what}


def _nic(view: View, instance: Instance, nic: Nic) -> CardDescription:
    """Return a card with all its parameters, and what its network is."""
    config = view.config
    params = node_tasks.wired(config, instance, nic).nicparams
    ways = {name: params[name] for name in nicparams.WAYS}  # Ganeti's; it has no filter
    told = _network(config.network(nic.network)) if nic.network else None
    return CardDescription(
        nic.name, nic.uuid, nic.ip, nic.mac, **ways, network=nic.network, netinfo=told
    )


def _network(network: Network) -> NetworkDescription:
    names = NetworkDescription.__struct_fields__
    return NetworkDescription(**{name: getattr(network, name) for name in names})


class InstanceQueryData(Operation, frozen=True, kw_only=True):
    """Tell about instances, running ones too unless `static`.

    Attributes
    ----------
    static
        Whether no node is asked: only what is on record is told.
    instances
        Names or uuids; empty for all.
    """

    op_id = "OP_INSTANCE_QUERY_DATA"
    role = Role.READ

    instances: list[str] = []
    static: bool = False
    use_locking: Annotated[bool, Moot("queries take no locks")] = False

    def _named(self, view: View) -> list[Instance]:
        if not self.instances:
            return view.config.named(Instance)
        return [view.config.instance(name) for name in self.instances]

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes once each."""
        if not self.static:
            for instance in self._named(view):
                yield node_tasks.facts_on(view.config.home(instance))
                yield node_tasks.guest_on(instance.primary_node, instance)
                yield from pairs.ask(view.config, view.config.disks_of(instance))

    def check(self, view: View) -> None:
        """Refuse names that are not known."""
        self._named(view)

    def result(
        self, view: View, _results: Sequence[Any]
    ) -> dict[str, InstanceDescription]:
        """Return a description by uuid."""
        return {one.uuid: self._told(view, one) for one in self._named(view)}

    def _told(self, view: View, instance: Instance) -> InstanceDescription:
        config = view.config
        node, group = config.home(instance), config.group_of(instance)
        others = config.secondary_nodes(instance)
        beyond = [config.group(one.group) for one in others]
        return InstanceDescription(
            name=instance.name,
            uuid=instance.uuid,
            serial_no=instance.serial_no,
            ctime=instance.ctime,
            mtime=instance.mtime,
            config_state=instance.admin_state,
            run_state=None if self.static else self._state(view, instance),
            **({} if self.static else _run(view, instance)),
            pnode=node.name,
            pnode_group_name=group.name,
            pnode_group_uuid=group.uuid,
            snodes=[one.name for one in others],
            snodes_group_names=[one.name for one in beyond],
            snodes_group_uuids=[one.uuid for one in beyond],
            os=instance.os,
            os_instance=instance.osparams,
            os_actual=osparams.public(config, instance),
            hypervisor=instance.hypervisor,
            hv_instance=instance.hvparams,
            hv_actual=hvwhole.whole(
                instance.hypervisor, node_tasks.hvparams(config, instance)
            ),
            be_instance=instance.beparams,
            be_actual=node_tasks.beparams(config, instance),
            nics=[_nic(view, instance, nic) for nic in instance.nics],
            disk_template=config.template_of(instance),
            disks=[self._disk(view, instance, d) for d in config.disks_of(instance)],
            disks_active=instance.disks_active,
            network_port=instance.network_port,
            tags=instance.tags,
        )

    @staticmethod
    def _state(view: View, instance: Instance) -> str | None:
        """Return up or down; None where nobody can tell."""
        if view.config.home(instance).offline:
            return None
        try:
            return "up" if runs(view, instance) else "down"
        except MoorageError:
            return None

    def _disk(self, view: View, instance: Instance, disk: Disk) -> DiskDescription:
        pool = view.config.pool_of(disk)
        held = None if self.static else self._held(view, instance, disk)
        copy = None if self.static else self._followed(view, instance, disk)
        return DiskDescription(
            iv_name=view.config.iv_name(disk),
            dev_type=disk.dev_type,
            logical_id=shown_id(disk),
            size=disk.size,
            mode=disk.mode,
            name=disk.name,
            uuid=disk.uuid,
            params=disk.params,
            pool=pool.name if pool else None,
            epoch=disk.epoch,
            quarantine=disk.quarantine,
            children=[_child(one) for one in disk.children],
            drbd_info=_pair(view.config, disk),
            behind=view.config.node(disk.behind).name if disk.behind else None,
            held=held,
            copy=copy,
            pstatus=_status(held.path, held.uris, held.mirror) if held else None,
            sstatus=_status(None, {}, copy.mirror) if copy else None,
        )

    @staticmethod
    def _held(view: View, instance: Instance, disk: Disk) -> HeldDisk | None:
        """Return device and URIs of a disk on the primary node."""
        node = view.config.home(instance)
        facts = view.told(node_tasks.facts_on(node))
        held = [one for one in facts.held if one.disk == disk.uuid] if facts else []
        if not held:
            return None
        mirror = _mirror(view, disk, node)
        return HeldDisk(path=held[0].path, uris=held[0].uris, mirror=mirror)

    @staticmethod
    def _followed(view: View, instance: Instance, disk: Disk) -> MirrorCopy | None:
        """Return the other copy of a mirrored disk, if it is set up."""
        home = view.config.home(instance)
        for node in copies.peers(view.config, disk, home):
            mirror = _mirror(view, disk, node)
            return MirrorCopy(mirror=mirror) if mirror else None
        return None


def _mirror(view: View, disk: Disk, node: Node) -> MirrorState | None:
    return behind.side(view, disk, node) if copies.keeps(disk, node) else None


def _status(
    path: str | None, uris: Mapping[str, str], mirror: MirrorState | None
) -> BlockStatus:
    """Return how a device is, for clients of Ganeti's."""
    where = path or next(iter(uris.values()), None)
    if mirror is None:
        return BlockStatus(where, None, None, None, None, None, _OKAY)
    return BlockStatus(
        where or f"/dev/drbd{mirror.minor}",
        _DRBD,
        mirror.minor,
        mirror.percent,
        mirror.seconds,
        (mirror.disk, mirror.peer_disk) != (UP_TO_DATE, UP_TO_DATE),
        _FAULTY if mirror.disk in ("Diskless", "Failed") else _OKAY,
    )


def _child(volume: Disk) -> ChildVolume:
    """Return one of the volumes that a disk is made of."""
    return ChildVolume(
        dev_type=volume.dev_type,
        logical_id=list(volume.logical_id),
        size=volume.size,
        uuid=volume.uuid,
    )


def _pair(config: Config, disk: Disk) -> MirrorPair | None:
    """Return who keeps the copies of a mirrored disk, under which numbers."""
    pair = pair_of(disk)
    if pair is None:
        return None
    first, second = (config.node(uuid).name for uuid in pair.nodes)
    return MirrorPair(
        primary_node=first,
        primary_minor=pair.minors[0],
        secondary_node=second,
        secondary_minor=pair.minors[1],
        port=pair.port,
    )
