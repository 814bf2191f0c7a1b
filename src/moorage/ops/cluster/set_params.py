# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster modify``: the settings of the whole cluster."""

from collections.abc import Iterator
from typing import Annotated, Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Ask, Lock, Operation, Question, Task, View, rights
from moorage.model import (
    Change,
    Cluster,
    Config,
    Disk,
    Instance,
    Node,
    NodeGroup,
    apply,
    hvparams,
    ipolicy,
    nicparams,
    successor,
    uidpool,
)
from moorage.model.kinds import Count, Moment, Seconds
from moorage.model.master_address import MasterAddress
from moorage.model.uidpool import UidPool
from moorage.ops import candidates
from moorage.ops.asking.node_tasks import facts_on, oses_on
from moorage.ops.planning import allocators, policy, processors
from moorage.ops.pool import StoragePoolAdd, StoragePoolRemove
from moorage.ops.volumes import copies
from moorage.ops.volumes.directories import SETTINGS
from moorage.protocol import LookAtSsconf
from moorage.storage.validation import check_image_directory

from . import defaults, image_directories, master_address, systems, volume_groups
from .merged_settings import MERGED

OsParameters = dict[str, dict[str, dict[str, Any]]]
"""Parameters by OS definition and hypervisor."""


class ClusterSetParams(Operation, frozen=True, kw_only=True):
    """Change settings; those that are not given stay.

    Attributes
    ----------
    shared_file_storage_dir
        Where the shared file system is mounted, on every node.
    file_storage_dir
        Where image files of one node are: an absolute path, the same on all nodes.
    gluster_storage_dir
        Where nodes mount the volumes of Gluster.
    volume_group_name
        LVM volume group of the disks that name none; empty for no LVM.
    enabled_hypervisors
        What guests may run on, as ``kvm``; the first is the default.
    enabled_disk_templates
        How disks may be stored; the first is the default.
    default_iallocator
        Who chooses nodes where nobody names one: ``hail`` or nothing is the planner,
        another name an allocator's on the master's node.
    default_iallocator_params
        Options that every allocator gets, by name.
    hvparams
        Parameters by hypervisor; the value ``default`` drops one.
    diskparams
        Parameters by disk template; the value ``default`` drops one.
    beparams
        Memory (``memory``), processors (``vcpus``) and the like of instances that say
        nothing else, plain or under the word ``default``.
    nicparams
        ``mode``, ``link`` and ``vlan`` of network cards that say nothing else.
    mac_prefix
        First three bytes of the hardware addresses that the cluster makes.
    ipolicy
        Parts of the instance policy; the value ``default`` drops one.
    enabled_user_shutdown
        Whether a guest that powers itself off may stay off.
    watcher_pause
        Until when the watcher does nothing; 0 for no pause.
    os_hvp
        Parameters of the hypervisor that instances of an OS get, by OS and hypervisor;
        the value ``default`` drops one.
    osparams
        OS parameters that instances of an OS get, by OS; the value ``default`` drops
        one.
    osparams_private_cluster
        OS parameters that are shown to nobody, by OS; the value ``default`` drops one.
    candidate_pool_size
        How many nodes are to be master candidates; more are made at once.
    max_running_jobs
        How many jobs work at once.
    job_retention
        For how long archived jobs are kept; 0 forgets a job when it is archived.
    ssconf
        Whether nodes have Ganeti's ``ssconf`` files; its own are put aside meanwhile.
    ndparams
        Node parameters where neither a node nor its group has others.
    hidden_os
        OS definitions that are listed no longer, or again: pairs of ``add`` or
        ``remove`` and a name.
    blacklisted_os
        OS definitions that new instances cannot have, or can again: pairs of ``add`` or
        ``remove`` and a name.
    uid_pool
        Ranges of user-ids that guests run as. Guests that run keep the user that they
        have.
    add_uids
        More ranges of user-ids that guests run as.
    remove_uids
        Ranges of user-ids that guests run as no longer.
    force
        Take OS definitions and OS parameters, too, that no node knows.
    master_ip
        The address that moves with the master: no node's own.
    master_netdev
        The network device that it is set on; empty for no such address any more.
    master_netmask
        Bits of its mask; 0 for all that it has.
    add_pools
        Storage pools to make, each with its ExtStorage provider; they are connected to
        no node group.
    remove_pools
        Storage pools to remove.
    """

    op_id = "OP_CLUSTER_SET_PARAMS"

    hvparams: Annotated[dict[str, dict[str, Any]] | None, rights.HYPERVISOR] = None
    beparams: dict[str, Any] | None = None
    diskparams: dict[str, dict[str, Any]] | None = None
    shared_file_storage_dir: Annotated[str | None, rights.PLACE] = None
    file_storage_dir: Annotated[str | None, rights.PLACE] = None
    gluster_storage_dir: Annotated[str | None, rights.PLACE] = None
    volume_group_name: str | None = None
    enabled_hypervisors: tuple[str, ...] | None = None
    enabled_disk_templates: tuple[str, ...] | None = None
    default_iallocator: Annotated[str | None, rights.DEFAULT_ALLOCATOR] = None
    default_iallocator_params: Annotated[
        dict[str, str] | None, rights.ALLOCATOR_WORDS
    ] = None
    ipolicy: dict[str, Any] | None = None
    enabled_user_shutdown: bool | None = None
    watcher_pause: Moment | None = None
    candidate_pool_size: Count | None = None
    max_running_jobs: Count | None = None
    job_retention: Seconds | None = None
    ssconf: Annotated[bool | None, rights.PLACE] = None
    ndparams: dict[str, Any] | None = None
    os_hvp: Annotated[
        dict[str, dict[str, dict[str, Any]]] | None, rights.HYPERVISOR
    ] = None
    osparams: dict[str, dict[str, Any]] | None = None
    osparams_private_cluster: dict[str, dict[str, Any]] | None = None
    hidden_os: tuple[tuple[str, str], ...] = ()
    blacklisted_os: tuple[tuple[str, str], ...] = ()
    nicparams: dict[str, Any] | None = None
    mac_prefix: str | None = None
    uid_pool: Annotated[UidPool | None, rights.USERS] = None
    add_uids: Annotated[UidPool | None, rights.USERS] = None
    remove_uids: UidPool | None = None
    force: bool = False
    master_ip: Annotated[str | None, rights.ADDRESS] = None
    master_netdev: Annotated[str | None, rights.ADDRESS] = None
    master_netmask: Annotated[Count | None, rights.ADDRESS] = None
    add_pools: tuple[tuple[str, str], ...] = ()
    remove_pools: tuple[str, ...] = ()

    def _pools(self) -> list[Operation]:
        """Return what is to be done with storage pools; each is named once."""
        check_once([*(name for name, _ in self.add_pools), *self.remove_pools])
        gone = [StoragePoolRemove(pool_name=name) for name in self.remove_pools]
        new = [StoragePoolAdd(pool_name=one, provider=by) for one, by in self.add_pools]
        return [*new, *gone]

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the cluster's settings, and storage pools."""
        yield Lock("cluster", view.config.cluster.uuid)
        for one in self._pools():
            yield from one.locks(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes for hypervisors and directories, where others are wanted."""
        if self.enabled_hypervisors is not None:
            yield from (facts_on(node) for node in view.config.hosts())
        yield from allocators.ask_there(view.config, self.default_iallocator)
        yield from volume_groups.ask(view.config.hosts(), self.volume_group_name)
        if self._systems():
            yield from (oses_on(node.uuid) for node in view.config.hosts())
        given = self._directories()
        for node in view.config.hosts() if given else ():
            yield image_directories.asked_on(view.config, node, given)
        for node in view.config.online() if self.ssconf else ():
            yield Ask(node.uuid, LookAtSsconf())
        if address := self._address(view.config.cluster):
            yield from master_address.ask(view.config, address)
        for one in self._pools():
            yield from one.questions(view)

    def check(self, view: View) -> None:
        """Refuse settings that would leave a disk or an instance behind."""
        changes = self._changes(view.config)
        allocators.check_default(view, self.default_iallocator)
        allocators.check_words(self.default_iallocator_params or {})
        new = successor(view.config.cluster, view.now, **changes)
        defaults.check_numbers(new)
        if self.hvparams or self.os_hvp or self.beparams:
            processors.check_defaults(view.config, apply(view.config, Change((new,))))
        for one in self._pools():
            one.check(view)
        check_image_directory("gluster_storage_dir", self.gluster_storage_dir or "")
        volume_groups.check(view, view.config.hosts(), self.volume_group_name)
        image_directories.check(view, view.config.hosts(), self._directories())
        systems.check_known(view, view.config.hosts(), self._systems())
        for node in view.config.online() if self.ssconf else ():
            _check_ssconf(node, view.told(Ask(node.uuid, LookAtSsconf())) or "")
        if address := self._address(view.config.cluster):
            master_address.check(view, address)
        if self.enabled_disk_templates is not None:
            check_templates(view.config, self.enabled_disk_templates)
        if self.enabled_hypervisors is not None:
            check_hypervisors(view, self.enabled_hypervisors)

    def warnings(self, view: View) -> Iterator[str]:
        """Name parameters that will have no effect, and instances that do not fit."""
        for hypervisor, given in (self.hvparams or {}).items():
            yield from hvparams.warnings(hypervisor, given)
        cluster = view.config.cluster
        if self.ipolicy:
            below = successor(cluster, view.now, **self._changes(view.config))
            for group in view.config.named(NodeGroup):
                before = ipolicy.group_policy(cluster, group)
                after = ipolicy.group_policy(below, group)
                yield from policy.warnings(view.config, group, before, after)

    def _systems(self) -> dict[str, set[str]]:
        """Return the OS definitions that must be known, with their parameters."""
        if self.force:
            return {}
        told = (self.osparams, self.osparams_private_cluster)
        return systems.named(self.os_hvp, told, (self.hidden_os, self.blacklisted_os))

    def _moving(self) -> tuple[str | None, str | None, int | None]:
        """Return what is said of the address that moves with the master."""
        return self.master_ip, self.master_netdev, self.master_netmask

    def _moves(self) -> bool:
        return any(one is not None for one in self._moving())

    def _address(self, cluster: Cluster) -> MasterAddress | None:
        """Return the address that is to move with the master, where one is given."""
        given = self._moving()
        return master_address.changed(cluster, *given) if self._moves() else None

    def _directories(self) -> dict[str, str]:
        """Return the directories that are given, by setting."""
        given = {one: getattr(self, one) for one in SETTINGS}
        return {one: path for one, path in given.items() if path is not None}

    def _changes(self, config: Config) -> dict[str, Any]:
        """Return the fields that change."""
        cluster = config.cluster
        moved = {n: image_directories.tidy(p) for n, p in self._directories().items()}
        found: dict[str, Any] = moved
        found |= {n: getattr(self, n) for n in _PLAIN if getattr(self, n) is not None}
        for name, merge in MERGED.items():
            given = getattr(self, name)
            if given:
                found[name] = merge(getattr(cluster, name), given)
        if self.mac_prefix is not None:
            found["mac_prefix"] = nicparams.checked_prefix(self.mac_prefix)
        if self.watcher_pause is not None:
            found["watcher_pause"] = self.watcher_pause or None
        found |= self._uids(cluster.uid_pool)
        if self._moves():
            found |= master_address.fields(config, self._address(cluster))
        return found

    def _uids(self, pool: UidPool) -> dict[str, UidPool]:
        """Return the pool of user-ids, if it changes."""
        if self.uid_pool is None and not self.add_uids and not self.remove_uids:
            return {}
        if self.uid_pool is not None:
            pool = uidpool.checked(self.uid_pool)
        pool = uidpool.added(pool, self.add_uids or ())
        return {"uid_pool": uidpool.removed(pool, self.remove_uids or ())}

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the changes."""
        cluster = view.config.cluster
        changes = self._changes(view.config)
        if changes:
            new = successor(cluster, view.now, **changes)
            after = apply(view.config, Change((new,)))
            more = candidates.promoted(after, view.now)
            yield view.record("change the cluster", new, *more)
            if "diskparams" in changes:
                yield from copies.retuned(view.config, after, after.all(Disk))
        if self._moves():
            yield from master_address.moving(view.config, self._address(cluster))
        for one in self._pools():
            yield from one.tasks(view)


def check_once(pools: list[str]) -> None:
    """Raise `BadInput` if a storage pool is named twice in one request."""
    twice = sorted({name for name in pools if pools.count(name) > 1})
    if twice:
        raise BadInput(f"storage pool '{twice[0]}' is named twice")


def check_templates(config: Config, wanted: tuple[str, ...]) -> None:
    """Raise `Refused` unless these can be all templates that are enabled."""
    defaults.check_some_templates(wanted)
    for disk in config.all(Disk):
        if disk.dev_type not in wanted:
            raise WrongState(
                f"disk template '{disk.dev_type}' is in use, by disk {disk.label}",
                hint=f"gnt-disk list 'dev_type == \"{disk.dev_type}\"'",
            )


def check_hypervisors(view: View, wanted: tuple[str, ...]) -> None:
    """Raise `Refused` unless these can be all hypervisors that are enabled."""
    defaults.check_some_hypervisors(wanted)
    for instance in view.config.all(Instance):
        if instance.hypervisor not in wanted:
            raise WrongState(
                f"hypervisor '{instance.hypervisor}' is in use, by instance "
                f"{instance.name}",
                hint=f"gnt-instance list 'hypervisor == \"{instance.hypervisor}\"'",
            )
    for node in view.config.hosts():
        _check_has(view, node, wanted)


def _check_ssconf(node: Node, problem: str) -> None:
    """Refuse files that a node says it cannot have."""
    if problem:
        raise WrongState(
            f"node {node.name} cannot have ssconf files: {problem}", node=node.name
        )


def _check_has(view: View, node: Node, wanted: tuple[str, ...]) -> None:
    """Refuse hypervisors that a node says it lacks; a silent one says nothing."""
    found = view.told(facts_on(node))
    known = found.hypervisors if found else wanted
    lacking = [name for name in wanted if name not in known]
    if lacking:
        raise WrongState(
            f"node {node.name} has no hypervisor '{lacking[0]}': it has "
            f"{', '.join(known) or 'none'}",
            hint=f"install it on {node.name}, or name others",
            node=node.name,
        )


_PLAIN = (
    *("enabled_hypervisors", "enabled_disk_templates", "default_iallocator"),
    *("gluster_storage_dir", "volume_group_name", "enabled_user_shutdown"),
    "default_iallocator_params",
    *("candidate_pool_size", "max_running_jobs", "job_retention", "ssconf"),
)
"""Settings that are recorded as they are given."""
