# SPDX-License-Identifier: BSD-2-Clause
"""A cluster on a page: what the jobs that succeeded have made of it.

A method for each opcode says what its success means to a user, and nothing of how it
is done. A job that failed means nothing.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from things import MEMORY, Card, Disk, Instance

from moorage import model
from moorage.jobs.job import Op
from moorage.model import Config, StoragePool
from moorage.protocol import RemoveDisk

COMMON = frozenset({"OP_ID", "priority", "reason", "ignore_capacity", "ignore_ipolicy"})


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
    networks
        Names of the networks, and of the node groups that each is connected to.
    nodes
        Names of the nodes, and of the group that each is in.
    offline, drained
        Names of the nodes that somebody marked so.
    exports
        What each export has of disks, by node and name.
    doubts
        Names of instances and uuids of disks that an operation left half-way.
    sent
        Names of instances whose jobs know better where they went, or whether they run.
    nameless
        Disks that were made without a name, or were left: nobody said their uuids.
    renamed
        Names that networks gave up since the last quiet moment: a job that named one,
        and ends later, may have meant the network of before.
    freed
        Disks that came to belong to no instance since then: one whose name another
        such disk has got another one.
    theirs
        Volumes that were there before any disk was in them: no job may destroy them,
        but one that somebody asked for that.
    """

    def __init__(self) -> None:
        self.disks: dict[str, Disk] = {}
        self.instances: dict[str, Instance] = {}
        self.pools: dict[str, set[str]] = {}
        self.networks: dict[str, set[str]] = {}
        self.nodes: dict[str, str] = {}
        self.offline: set[str] = set()
        self.drained: set[str] = set()
        self.exports: dict[tuple[str, str], list[Disk]] = {}
        self.doubts: set[str] = set()
        self.sent: set[str] = set()
        self.nameless: list[Disk] = []
        self.theirs: set[str] = set()
        self.renamed: set[str] = set()
        self.freed: set[str] = set()

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
        if opcode["OP_ID"] == "OP_BACKUP_EXPORT" and instance:
            self.backup_export(None, name, opcode["target_node"])

    def grew(self, disk: str) -> None:
        """Take note that a growth failed: nobody can tell whether its volume grew."""
        if disk in self.disks:
            self.disks[disk].roomy = True

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
                self.instances[name] = Instance(
                    *(node, up == "up", disks, up == "up", None),
                    found.beparams.get("maxmem", MEMORY),
                    set(found.tags),
                )
            else:
                del self.instances[name]
        for uuid in self.doubts & self.disks.keys():
            if config.knows(model.Disk, uuid):
                self.disks[uuid].size = config.disk(uuid).size
            else:
                self.forget(uuid)
        for name in self.sent & self.instances.keys():
            found = config.instance(name)
            self.instances[name].node = config.node(found.primary_node).name
            self.instances[name].up = found.admin_state == "up"
        self.learn_names(config)
        self.doubts.clear()
        self.sent.clear()
        self.renamed.clear()

    def learn_names(self, config: Config) -> None:
        """Learn what disks are called that an instance let go of."""
        for uuid in self.freed & self.disks.keys():
            name, found = self.disks[uuid].name, config.disk(uuid).name
            assert found == name or f"{found}".startswith(f"{name}-"), found
            self.disks[uuid].name = found
        self.freed.clear()

    # What was there before any disk.

    def removes(self, opcode: Mapping[str, Any], op: Op) -> None:
        """Learn whose volumes an operation was to destroy: by a person's word alone."""
        for task in op.tasks:
            call = getattr(task, "do", None)
            name = call.disk.volume if isinstance(call, RemoveDisk) else ""
            if name in self.theirs:
                what = opcode["OP_ID"]
                words = [one[0] for one in opcode.get("disks", ()) or ()]
                modifies = what == "OP_INSTANCE_SET_PARAMS" and "remove" in words
                goes = what == "OP_BACKUP_EXPORT" and opcode.get("remove_instance")
                removals = ("OP_DISK_REMOVE", "OP_INSTANCE_REMOVE")
                assert modifies or goes or what in removals, (
                    f"{op.summary} would destroy {name}, which it did not make"
                )
                self.theirs.discard(name)

    def left_behind(self, config: Config, places: Mapping[str, Any]) -> None:
        """Learn of disks in adopted volumes that other disks have left."""
        for disk in config.all(model.Disk):
            known = disk.uuid in self.disks or disk.quarantine or disk.name
            if disk.adopted and not known:
                ((records, key),) = places[disk.volume.rpartition("/")[2]]
                data = records[key]["data"]
                made = Disk(None, disk.size, disk.dev_type, writes=[data])
                pools = (
                    one for one in config.all(StoragePool) if one.uuid == disk.pool
                )
                made.pool = next((one.name for one in pools), None)
                self.disks[disk.uuid] = made

    # What success means, by opcode.

    def disk_add(self, uuid, name, size, disk_template=None, pool=None, **_where):
        self.disks[uuid] = Disk(name, size, disk_template or "ext", pool)

    def disk_attach(self, _result, disk, instance_name, index=-1):
        disks = self.instances[instance_name].disks
        disks.insert(len(disks) if index == -1 else index, disk)
        self.disks[disk].moves += 1

    def disk_detach(self, _result, disk):
        self.owner(disk).disks.remove(disk)
        self.freed.add(disk)

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

    def disk_remove(self, _result, disk, **_word):
        del self.disks[disk]

    def instance_create(
        self, nodes, instance_name, disks, start=True, src_path="", nics=(), **how
    ):
        dumps = self.exports.get((nodes[0], src_path), [None] * len(disks))
        for disk, dump in zip(disks, dumps, strict=False):
            self.disks[disk["name"]] = self.restored(disk["name"], dump) or Disk(
                disk["name"], disk["size"], how["disk_template"], disk.get("pool")
            )
        names = [disk["name"] for disk in disks]
        for dump in dumps[len(disks) :]:  # another export took this one's place
            self.nameless.append(self.restored(None, dump))
            self.doubts.add(instance_name)
        named = {card.get("network") for card in nics}
        unsure = src_path or named & self.renamed
        cards = None if unsure else [Card(**card) for card in nics]
        self.instances[instance_name] = Instance(nodes[0], start, names, cards=cards)
        if src_path:
            self.doubts.add(instance_name)

    def restored(self, name, dump):
        """Return a disk as it was, in no storage pool: nobody asked for one."""
        return dump and replace(deepcopy(dump), name=name, pool=None, copied=True)

    def instance_startup(self, _result, instance_name, if_wanted=False, **_how):
        self.instances[instance_name].up = True
        self.instances[instance_name].asleep = False

        if if_wanted:
            self.sent.add(instance_name)

    instance_reboot = instance_startup

    def instance_shutdown(self, _result, instance_name, if_ended=False, **_who):
        self.instances[instance_name].up = False
        if if_ended:
            self.sent.add(instance_name)

    def instance_migrate(self, _result, instance_name, target_node=None, **_how):
        self.instances[instance_name].node = target_node
        if target_node is None:
            self.sent.add(instance_name)
        for disk in self.instances[instance_name].disks:
            self.disks[disk].moves += 1

    def instance_failover(self, _result, instance_name, target_node=None, **_how):
        self.instance_migrate(None, instance_name, target_node)
        self.instances[instance_name].asleep = False

    def instance_remove(self, _result, instance_name, keep_disks=False):
        for disk in self.instances.pop(instance_name).disks:
            if keep_disks:
                self.freed.add(disk)
            else:
                del self.disks[disk]

    def instance_replace_disks(self, _result, **_which):
        """Leave all as it is: the other copy is another one."""

    def instance_rename(self, new, instance_name, **_how):
        self.instances[new] = self.instances.pop(instance_name)

    def instance_reinstall(self, _result, instance_name, os_type):
        """Leave all as it is: the scripts of simulated systems write nothing."""

    def instance_recreate_disks(self, _result, instance_name, nodes=()):
        instance = self.instances[instance_name]
        for uuid in instance.disks:
            disk = self.disks[uuid]
            self.nameless.append(self.copy(uuid, name=None))
            disk.writes, disk.roomy = [], False
            disk.moves += 1
        if nodes:
            instance.node = nodes[0]

    def instance_move(self, _result, **_where):
        """Leave it to the jobs that it submits."""

    instance_change_group = node_evacuate = node_migrate = node_failover = instance_move
    group_evacuate = instance_move

    def instance_set_params(
        self, _result, instance_name, nics=(), disk_template=None, **changes
    ):
        instance = self.instances[instance_name]
        for action, number, given in nics:
            self.rewire(instance, action, int(number), given)
        for uuid in instance.disks if disk_template else ():
            self.disks[uuid].template, self.disks[uuid].pool = disk_template, None
        instance.memory = changes.get("beparams", {}).get("memory", instance.memory)
        instance.node = changes.get("pnode", instance.node)

    def rewire(self, instance, action, number, given):
        if given and given.get("network") in self.renamed:
            instance.cards = None
        if instance.cards is None:
            return
        if action == "add":
            instance.cards.append(Card(given.get("network"), given.get("ip")))
        elif action == "remove":
            del instance.cards[number]
        else:
            card = instance.cards[number]
            network = given.get("network", card.network)
            network = None if network == "none" else network
            ip = given.get("ip", card.ip if network == card.network else None)
            card.network, card.ip = network, None if ip == "none" else ip

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

    def node_set_params(self, _result, node_name, offline=None, drained=None, **_roles):
        if offline is not None:
            (self.offline.add if offline else self.offline.discard)(node_name)
        if drained is not None:
            (self.drained.add if drained else self.drained.discard)(node_name)
        if offline or _roles.get("master_candidate"):
            self.drained.discard(node_name)
        if drained or _roles.get("master_candidate"):
            self.offline.discard(node_name)

    def node_add(self, _uuid, node_name, group, **_where):
        self.nodes[node_name] = group

    def node_remove(self, _result, node_name):
        del self.nodes[node_name]
        self.offline.discard(node_name)
        self.drained.discard(node_name)

    def group_assign_nodes(self, _result, group_name, nodes):
        self.nodes |= dict.fromkeys(nodes, group_name)

    def tags_of(self, kind, name):
        return (self.disks if kind == "disk" else self.instances)[name].tags

    def tags_set(self, _result, kind, name, tags):
        self.tags_of(kind, name).update(tags)

    def tags_del(self, _result, kind, name, tags):
        self.tags_of(kind, name).difference_update(tags)

    def network_add(self, _result, network_name, **_how):
        self.networks[network_name] = set()

    def network_remove(self, _result, network_name):
        del self.networks[network_name]

    def network_rename(self, _result, network_name, new_name):
        self.networks[new_name] = self.networks.pop(network_name)
        self.renamed.add(network_name)
        for one in self.instances.values():
            for card in one.cards or ():
                if card.network == network_name:
                    card.network = new_name

    def network_connect(self, _result, network_name, group_name, **_how):
        self.networks[network_name].add(group_name)

    def network_disconnect(self, _result, network_name, group_name):
        self.networks[network_name].discard(group_name)

    def storage_pool_add(self, _result, pool_name, groups=(), **_how):
        self.pools[pool_name] = set(groups)

    def storage_pool_remove(self, _result, pool_name):
        del self.pools[pool_name]

    def storage_pool_connect(self, _result, pool_name, groups):
        self.pools[pool_name].update(groups)

    def storage_pool_disconnect(self, _result, pool_name, groups):
        self.pools[pool_name].difference_update(groups)
