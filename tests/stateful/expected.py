# SPDX-License-Identifier: BSD-2-Clause
"""A cluster on a page: what the jobs that succeeded have made of it.

A method for each opcode says what its success means to a user, and nothing of how it
is done. A job that failed means nothing.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from moorage import model
from moorage.model import Config

COMMON = frozenset({"OP_ID", "priority", "reason", "ignore_capacity"})


@dataclass
class Disk:
    """A disk.

    Attributes
    ----------
    size
        MiB.
    roomy
        Whether its volume may be larger: a growth failed, and nobody can tell when.
    pool
        Name of the storage pool, if it is in one.
    moves
        How often it came to an instance or went with one; its epoch is no less.
    writes
        What was written to it since the last quiet moment, and what was there then.
        The last entry is what must be read.
    copied
        Whether it was made of another one since then, at any of the writes.
    """

    name: str | None
    size: int
    template: str
    pool: str | None = None
    roomy: bool = False
    moves: int = 0
    tags: set[str] = field(default_factory=set)
    writes: list[str] = field(default_factory=list)
    copied: bool = False


@dataclass
class Instance:
    """An instance.

    Attributes
    ----------
    up
        Whether it should run.
    disks
        Their uuids, by slot.
    asleep
        Whether it should run and does not: its node lost power.
    """

    node: str
    up: bool
    disks: list[str] = field(default_factory=list)
    asleep: bool = False


class Expected:
    """What a cluster must be.

    Attributes
    ----------
    disks
        By uuid; those that were just made with an instance by name, until they are
        looked up.
    instances
        By name.
    pools
        Names of the storage pools, and of the node groups that each is connected to.
    offline
        Names of the nodes that somebody marked offline.
    exports
        What each export has of disks, by node and name.
    doubts
        Names of instances and uuids of disks that an operation left half-way.
    """

    def __init__(self) -> None:
        self.disks: dict[str, Disk] = {}
        self.instances: dict[str, Instance] = {}
        self.pools: dict[str, set[str]] = {}
        self.offline: set[str] = set()
        self.exports: dict[tuple[str, str], list[Disk]] = {}
        self.doubts: set[str] = set()

    def apply(self, opcode: Mapping[str, Any], result: Any) -> None:
        """Take note that an operation succeeded with a result."""
        fields = {key: opcode[key] for key in opcode.keys() - COMMON}
        effect = getattr(self, opcode["OP_ID"].removeprefix("OP_").lower())
        effect(result, **fields)

    def look_up(self, name: str, uuid: str) -> None:
        """Learn the uuid of a disk that was made with an instance."""
        self.disks[uuid] = self.disks.pop(name)
        for instance in self.instances.values():
            instance.disks = [uuid if d == name else d for d in instance.disks]

    def owner(self, disk: str) -> Instance:
        """Return the instance that has a disk."""
        return next(it for it in self.instances.values() if disk in it.disks)

    def forget(self, disk: str) -> None:
        """Forget a disk, whoever has it."""
        self.disks.pop(disk, None)
        for instance in self.instances.values():
            instance.disks = [uuid for uuid in instance.disks if uuid != disk]

    def doubt(self, opcode: Mapping[str, Any]) -> None:
        """Take note that an operation failed after its point of no return."""
        name = opcode.get("instance_name", "")
        instance = self.instances.get(name)
        self.doubts.update((name, opcode.get("disk", "")))
        self.doubts.update(instance.disks if instance else ())
        if opcode["OP_ID"] == "OP_DISK_GROW":
            self.disks[opcode["disk"]].roomy = True
        if opcode["OP_ID"] == "OP_BACKUP_EXPORT" and instance:
            self.backup_export(None, name, opcode["target_node"])

    def believe(self, config: Config, exports: set[tuple[str, str]]) -> None:
        """Believe the records of what is in doubt; its volumes must be there still."""
        for one in [one for one in self.exports if one[1] in self.doubts]:
            if one not in exports:
                del self.exports[one]
        for name in self.doubts & self.instances.keys():
            if config.knows(model.Instance, name):
                found = config.instance(name)
                node, up = config.node(found.primary_node).name, found.admin_state
                disks = list(found.disks)
                self.instances[name] = Instance(node, up == "up", disks, up == "up")
            else:
                del self.instances[name]
        for uuid in self.doubts & self.disks.keys():
            if config.knows(model.Disk, uuid):
                self.disks[uuid].size = config.disk(uuid).size
            else:
                self.forget(uuid)
        self.doubts.clear()

    # What success means, by opcode.

    def disk_add(self, uuid, name, size, disk_template=None, pool=None, **_where):
        self.disks[uuid] = Disk(name, size, disk_template or "ext", pool)

    def disk_attach(self, _result, disk, instance_name, index=-1):
        disks = self.instances[instance_name].disks
        disks.insert(len(disks) if index == -1 else index, disk)
        self.disks[disk].moves += 1

    def disk_detach(self, _result, disk):
        self.owner(disk).disks.remove(disk)

    def disk_grow(self, _result, disk, amount):
        self.disks[disk].size += amount

    def disk_rename(self, _result, disk, new_name):
        self.disks[disk].name = new_name

    def disk_snapshot(self, uuid, disk, new_name=None):
        self.disks[uuid] = self.copy(disk, name=new_name)

    def copy(self, disk, **changes):
        fresh = {"tags": set(), "moves": 0, "copied": True}
        return replace(deepcopy(self.disks[disk]), **fresh | changes)

    def disk_clone(self, uuid, disk, new_name, disk_template=None, pool=None, **_how):
        where = {"template": disk_template, "pool": pool} if disk_template else {}
        self.disks[uuid] = self.copy(disk, name=new_name, **where)

    def disk_convert(self, _result, disk, disk_template=None, pool=None, **_where):
        found = self.disks[disk]
        found.template, found.pool = disk_template or found.template, pool

    def disk_remove(self, _result, disk):
        del self.disks[disk]

    def instance_create(
        self, nodes, instance_name, disks, start=True, src_path="", **how
    ):
        dumps = self.exports.get((nodes[0], src_path), [None] * len(disks))
        for disk, dump in zip(disks, dumps, strict=True):
            self.disks[disk["name"]] = self.restored(disk["name"], dump) or Disk(
                disk["name"], disk["size"], how["disk_template"], disk.get("pool")
            )
        names = [disk["name"] for disk in disks]
        self.instances[instance_name] = Instance(nodes[0], start, names)

    def restored(self, name, dump):
        return dump and replace(deepcopy(dump), name=name, copied=True)

    def instance_startup(self, _result, instance_name, **_how):
        self.instances[instance_name].up = True
        self.instances[instance_name].asleep = False

    instance_reboot = instance_startup

    def instance_shutdown(self, _result, instance_name):
        self.instances[instance_name].up = False

    def instance_migrate(self, _result, instance_name, target_node):
        self.instances[instance_name].node = target_node
        for disk in self.instances[instance_name].disks:
            self.disks[disk].moves += 1

    def instance_failover(self, _result, instance_name, target_node):
        self.instance_migrate(None, instance_name, target_node)
        self.instances[instance_name].asleep = False

    def instance_remove(self, _result, instance_name, keep_disks=False):
        for disk in self.instances.pop(instance_name).disks:
            if not keep_disks:
                del self.disks[disk]

    def instance_replace_disks(self, _result, **_which):
        """Leave all as it is: the other copy is another one."""

    def backup_export(
        self, _r, instance_name, target_node, remove_instance=False, **_how
    ):
        disks = self.instances[instance_name].disks
        self.exports[target_node, instance_name] = [self.copy(one) for one in disks]
        if remove_instance:
            self.instance_remove(None, instance_name)

    def backup_remove(self, _result, instance_name, node):
        del self.exports[node, instance_name]

    def disk_export(self, name, disk, target_node):
        self.exports[target_node, name] = [self.copy(disk)]

    def disk_import(self, uuid, name, src_path, src_node):
        self.disks[uuid] = self.restored(name, self.exports[src_node, src_path][0])

    def node_set_params(self, _result, node_name, offline):
        (self.offline.add if offline else self.offline.discard)(node_name)

    def tags_set(self, _result, kind, name, tags):
        assert kind == "disk"
        self.disks[name].tags.update(tags)

    def tags_del(self, _result, kind, name, tags):
        assert kind == "disk"
        self.disks[name].tags.difference_update(tags)

    def storage_pool_add(self, _result, pool_name, groups=(), **_how):
        self.pools[pool_name] = set(groups)

    def storage_pool_remove(self, _result, pool_name):
        del self.pools[pool_name]

    def storage_pool_connect(self, _result, pool_name, groups):
        self.pools[pool_name].update(groups)

    def storage_pool_disconnect(self, _result, pool_name, groups):
        self.pools[pool_name].difference_update(groups)
