# SPDX-License-Identifier: BSD-2-Clause
"""Which guests of a cluster Ganeti started, and what becomes of each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from moorage.htools import rolling
from moorage.jobs import Ask, Operation, Question, View
from moorage.model import ForeignGuest, Instance, Node, NodeGroup
from moorage.model.caller import Role
from moorage.ops.asking.silence import unanswered
from moorage.ops.planning import fleet
from moorage.protocol import ListForeignGuests

ASKED = "it is asked to power off, and is started anew"
_FORCED = "it is asked to power off, ended if it does not, and started anew"
_BY_HAND = "power it off from inside; then: gnt-instance startup {0}"


class ForeignRow(Struct, frozen=True, kw_only=True):
    """A guest that Ganeti started.

    Attributes
    ----------
    node, name, uuid, pid
        Where it runs, what it is called, and which process it is.
    status
        ``adopted``, ``ready`` to be taken over, ``restart`` where it cannot be but its
        instance is on record, or ``unknown``, which is left alone.
    reason
        Why it is not adopted or ready, in a sentence.
    files
        What it has open that may be its disks.
    restart
        What a restart needs; empty for one of which no instance is on record.
    wave
        In which wave it can be restarted, from 1; 0 where it is done by hand, or not.
    """

    node: str
    name: str
    uuid: str
    pid: int
    status: str
    reason: str = ""
    files: tuple[str, ...] = ()
    restart: str = ""
    wave: int = 0


class ForeignGuests(Struct, frozen=True, kw_only=True):
    """The guests of a cluster that Ganeti started.

    Attributes
    ----------
    silent
        Why nodes gave no answer, by name.
    """

    guests: list[ForeignRow]
    silent: dict[str, str]


class ClusterForeignGuests(Operation, frozen=True, kw_only=True):
    """Tell which guests of all nodes Ganeti started."""

    op_id = "OP_CLUSTER_FOREIGN_GUESTS"
    role = Role.READ

    def questions(self, view: View) -> Iterator[Question]:
        """Ask every node that is not marked offline."""
        return (_asked(node) for node in _online(view))

    def result(self, view: View, _results: Sequence[Any]) -> ForeignGuests:
        """Return a row for each guest, and why nodes did not answer."""
        seen = [
            (node, one)
            for node in _online(view)
            for one in view.told(_asked(node)) or ()
        ]
        waves = _waves(view) if seen else {}
        return ForeignGuests(
            guests=[_row(view, node, one, waves) for node, one in seen],
            silent=unanswered(view, self.questions(view)),
        )


def _online(view: View) -> list[Node]:
    return [node for node in view.config.all(Node) if not node.offline]


def _asked(node: Node) -> Ask[list[ForeignGuest]]:
    return Ask(node.uuid, ListForeignGuests())


def _waves(view: View) -> dict[str, int]:
    """Return in which wave ``hroller`` would restart each node, by name."""
    groups = [group.uuid for group in view.config.all(NodeGroup)]
    state = fleet.state(
        view, fleet.Reading(fleet.of_groups(view.config, groups), facts={})
    )
    online = {node.name for node in _online(view)}
    state = state.with_nodes(
        node.copy(offline=node.name not in online) for node in state.nodes
    )
    return {
        state.nodes[at].name: number
        for number, nodes in enumerate(rolling.waves(state), 1)
        for at in nodes
    }


def _row(
    view: View, node: Node, found: ForeignGuest, waves: Mapping[str, int]
) -> ForeignRow:
    status, reason = _status(view, node, found)
    known, deaf = status != "unknown", bool(found.monitor) and not found.adopted
    needs = _FORCED if found.adopted else ASKED
    needs = _BY_HAND.format(found.name) if deaf else needs
    return ForeignRow(
        node=node.name,
        name=found.name,
        uuid=found.uuid,
        pid=found.pid,
        status=status,
        reason=reason,
        files=found.files,
        restart=needs if known else "",
        wave=waves.get(node.name, 0) if known and not deaf else 0,
    )


def _status(view: View, node: Node, found: ForeignGuest) -> tuple[str, str]:
    """Return what becomes of a guest, and why."""
    if found.adopted:
        return "adopted", ""
    if not found.uuid:
        return "unknown", "its command line has no uuid"
    instance = view.config.objects.get(found.uuid)
    if not isinstance(instance, Instance):
        return "unknown", "no instance on record is this guest"
    if instance.primary_node != node.uuid:
        home = view.config.home(instance).name
        return "unknown", f"on record, {instance.name} is on node {home}"
    why = found.monitor or _afar(found)
    return ("restart", why) if why else ("ready", "")


def _afar(found: ForeignGuest) -> str:
    """Return why disks that QEMU reaches by itself are in the way; empty for none."""
    if not found.afar:
        return ""
    return (
        f"QEMU reaches its disks by itself ({' and '.join(found.afar)}): nobody can "
        "compare them with those on record"
    )
