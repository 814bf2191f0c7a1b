# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance move``: to another node, with disks that are on one node alone.

Local volumes travel as mirrored ones: they get a second copy on the other node, the
instance goes there, and the copy that it left is dropped. Image files are copied to
mirrored volumes first, and in the end to files of the other node. Each step is an
operation of its own, which is undone or carried on by itself. However far they come, a
job drops the copy that is too many, and another one starts the guest where it is then:
what breaks in the middle leaves it where it was, as a migration and a failover do.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Question, Sought, View
from moorage.jobs.job import FINISHED
from moorage.jobs.results import Sent
from moorage.jobs.unread import Moot
from moorage.model import Claim, Disk, Node
from moorage.model.kinds import Seconds
from moorage.ops.asking.node_tasks import settings
from moorage.ops.guests.liveness import check_unused, runs, seek
from moorage.ops.instance.base import SHUTDOWN_TIMEOUT, OnInstance
from moorage.ops.instance.mirroring import is_in_place, rooms
from moorage.ops.planning import links, placement
from moorage.ops.volumes import copies, disk_spec, disk_words, pairs
from moorage.ops.volumes.dependents import ask_dependents, check_no_dependents
from moorage.ops.volumes.disk_access import able
from moorage.ops.volumes.disk_words import DiskSpec
from moorage.storage import TEMPLATES, Can, Reach
from moorage.storage.templates import template_named

Opcode = dict[str, Any]


class InstanceMove(OnInstance, frozen=True, kw_only=True):
    """Send an instance to another node; its steps are a job of their own.

    Attributes
    ----------
    ignore_consistency
        Whether it goes on with a second copy that lacks what was written last.
    ignore_ipolicy
        Whether the policy of the node group does not count.
    target_node
        The node to go to.
    shutdown_timeout
        How long a guest gets that must be shut down for it.
    """

    op_id = "OP_INSTANCE_MOVE"

    target_node: str
    shutdown_timeout: Seconds = SHUTDOWN_TIMEOUT
    ignore_consistency: bool = False
    ignore_ipolicy: bool = False
    compress: Annotated[
        str | None, Moot("copies are made block by block, by the storage itself")
    ] = None

    def target(self, view: View) -> Node:
        """Return the node to go to."""
        return view.config.node(self.target_node)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, for snapshots, and the other node for its room."""
        yield from OnInstance.questions(self, view)
        yield from ask_dependents(view.config, self._local(view))
        home = view.config.home(self.instance(view))
        nodes = [self.target(view), *([home] if self._local(view) else [])]
        for node in nodes:
            if not node.offline:
                yield placement.room_on(view.config, node)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest, which would use the disks."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse what has no way there; the steps refuse the rest."""
        OnInstance.check(self, view)
        instance, node = self.instance(view), self.target(view)
        check_unused(view, instance)
        if node.uuid == instance.primary_node:
            raise WrongState(f"instance {instance.name} is on node {node.name} already")
        placement.check_takes(node)
        if self._ways(view):
            check_no_dependents(view, self._local(view))
            self._check_room(view)

    def warnings(self, view: View) -> Iterator[str]:
        """Name what was adopted and is removed: to leave it is what was asked."""
        yield from OnInstance.warnings(self, view)
        if not self._ways(view):
            return
        for disk in view.config.disks_of(self.instance(view)):
            if disk.was_there:
                volume = "/".join(map(str, disk.logical_id))
                yield (
                    f"volume {volume} of disk {disk.label} was adopted: it is removed "
                    f"when its copy on node {self.target_node} is whole"
                )

    def _check_room(self, view: View) -> None:
        """Refuse before the guest is shut down what would not fit on the other node."""
        instance, node, config = self.instance(view), self.target(view), view.config
        view.answer(placement.room_on(config, node))
        pairs.check_apart(config, config.home(instance), node)
        what = f"the disks of instance {instance.name}"
        placement.check_rooms(view, what, self._rooms(view))
        placement.check_move(view, instance, node)
        links.check(view, node, instance.nics)

    def _rooms(self, view: View) -> Iterator[Claim]:
        """Yield what its disks take on the way: mirrored ones, and those in the end."""
        config, node, disks = view.config, self.target(view), self._disks(view)
        home = config.home(self.instance(view))
        wishes = [_mirrored(view, one) for one in disks]
        if not _is_copied(view, disks):
            both = tuple(zip(disks, wishes, strict=True))
            yield from rooms(config, both, home, node)
            return
        yield copies.room(config, disks, disks[0].dev_type, node)
        for one in (home, node):
            yield Claim(node=one.uuid, rooms=disk_spec.taken(view, wishes, one))

    def _local(self, view: View) -> list[Disk]:
        """Return the disks that one node has, or two."""
        disks = self._disks(view)
        return [one for one in disks if able(one).reach is not Reach.GROUP]

    def _disks(self, view: View) -> list[Disk]:
        return view.config.disks_of(self.instance(view))

    def _ways(self, view: View) -> str:
        """Return the template of the local disks; empty where there are none."""
        disks, local = self._disks(view), self._local(view)
        if not local:
            return ""
        kinds = {disk.dev_type for disk in disks}
        if len(kinds) > 1:
            raise NotSupported(
                f"instance {self.instance_name} has disks of several templates: they "
                "do not travel together",
                hint=f"first: gnt-disk convert -t sharedfile {local[0].label}",
            )
        if not all(_can_be_mirrored(view, one) for one in local):
            raise NotSupported(
                f"disk {local[0].label} of template '{local[0].dev_type}' cannot get "
                "a second copy on another node",
                hint="bring it to shared storage, or to plain: "
                f"gnt-instance modify -t TEMPLATE {self.instance_name}",
                disk=local[0].uuid,
            )
        return kinds.pop()

    def jobs(self, view: View) -> list[list[Opcode]]:
        """Return the steps."""
        instance = self.instance(view)
        was = self._ways(view)
        about = {"instance_name": instance.name}
        if not was:
            to = {"target_node": self.target(view).name}
            return [[self._failover(about | to)]]
        mirrored = {"disk_template": mirrored_template()}
        change: Opcode = {"OP_ID": "OP_INSTANCE_SET_PARAMS", **about, "passing": True}
        there = {"remote_node": self.target(view).name}
        policy = {"ignore_ipolicy": True}  # for the moment of the journey
        travel = self._failover(about) | {"start": False}
        steps = [change | mirrored | there | policy, travel]
        single = change | {"disk_template": was} | policy
        if not runs(view, instance):
            return [steps, [_afterwards(single)]]
        # It stays on record that it should run: a start that fails is the watcher's.
        down: Opcode = {"OP_ID": "OP_INSTANCE_SHUTDOWN", **about, "no_remember": True}
        down["timeout"] = self.shutdown_timeout
        # The copy on the other node may be what failed: the guest does not wait for it.
        up: Opcode = {"OP_ID": "OP_INSTANCE_STARTUP", **about, "force": True}
        up["if_wanted"] = instance.admin_state == "up"
        return [[down, *steps], [_afterwards(single)], [_afterwards(up)]]

    def _failover(self, fields: Opcode) -> Opcode:
        return {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            **fields,
            "ignore_ipolicy": self.ignore_ipolicy,
            "shutdown_timeout": self.shutdown_timeout,
            "ignore_consistency": self.ignore_consistency,
        }

    def result(self, view: View, _results: Sequence[Any]) -> Sent:
        """Return where it goes."""
        return Sent(target_node=self.target(view).name)


def _afterwards(opcode: Opcode) -> Opcode:
    """Return what is done once the job before has ended, however it did."""
    return opcode | {"depends": [[-1, sorted(FINISHED)]]}


def mirrored_template() -> str:
    """Return the template whose disks have a copy on two nodes."""
    found = next(filter(pairs.is_mirrored, TEMPLATES), "")
    if not found:
        raise BadInput("no disk template keeps two copies")
    return found


def _mirrored(view: View, disk: Disk) -> DiskSpec:
    """Return what a disk is while it travels."""
    return disk_words.DiskWords(
        {"size": disk.size}, template=mirrored_template(), params={}
    ).read(view.config)


def _can_be_mirrored(view: View, disk: Disk) -> bool:
    """Whether a disk gets a second copy: in its place, or after it is copied."""
    return is_in_place(disk, _mirrored(view, disk)) or _is_copied(view, [disk])


def _is_copied(view: View, disks: Sequence[Disk]) -> bool:
    """Whether disks are no volumes of those that are mirrored, and can become such.

    They are copied to mirrored ones, and on the other node to what they were.
    """
    to, cluster = template_named(mirrored_template()), view.config.cluster
    known = settings(cluster, to.name)
    enabled = cluster.enabled_disk_templates or tuple(TEMPLATES)
    return (
        to.name in enabled
        and bool(to.unit_key(known, {}))
        and all(
            able(one).reach is Reach.NODE and Can.CREATE in able(one).can
            for one in disks
        )
        and not any(is_in_place(one, _mirrored(view, one)) for one in disks)
    )
