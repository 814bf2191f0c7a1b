# SPDX-License-Identifier: BSD-2-Clause
"""Nodes' power, and scripts that their administrators let the cluster run."""

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, Run, Task, View
from moorage.model import Config, Node
from moorage.model.caller import Role
from moorage.model.kinds import PowerCommand
from moorage.model.values import Value
from moorage.ops.asking.node_tasks import on_each
from moorage.ops.asking.silence import check_each_online
from moorage.ops.ndparams import OOB, filled
from moorage.protocol import PowerCycle, RunScript

from .base import OnNode

NORMAL, NO_DATA = 0, 2
"""Statuses of cells, as in the answers of queries."""
Named = tuple[int, str]
Told = tuple[int, Value]
"""A status, and a value."""


class NodePowercycle(OnNode, frozen=True, kw_only=True):
    """Reboot a node at once; its guests die with it.

    It holds no locks: it is for nodes that hang.

    Attributes
    ----------
    force
        Whether it may be the master's node.
    """

    op_id = "OP_NODE_POWERCYCLE"

    force: bool = False

    def check(self, view: View) -> None:
        """Refuse for the master's node, unless somebody insists."""
        node = self.node(view)
        if node.uuid == view.config.cluster.master_node and not self.force:
            raise WrongState(
                f"node {node.name} is the master's: this job would die with it",
                hint=f"gnt-node powercycle --force {node.name}",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Ask for it once: a second time would be a second reboot."""
        node = self.node(view)
        yield Run(what=f"reboot node {node.name}", node=node.uuid, do=PowerCycle())


class OobCommand(Operation, frozen=True, kw_only=True):
    """Switch or ask the power of nodes, by their out-of-band program.

    The node parameter ``oob_program`` names a program in a directory of the master's
    node. It gets the command and the node's name. No locks are held: it is for nodes
    that hang.

    Attributes
    ----------
    node_names
        Names or uuids.
    command
        ``power-on``, ``power-off``, ``power-cycle``, ``power-status`` or ``health``.
    ignore_status
        Whether a node's power is switched off that is not marked offline.
    """

    op_id = "OP_OOB_COMMAND"
    role = Role.ROOT

    node_names: tuple[str, ...] = ()
    command: PowerCommand
    ignore_status: bool = False

    def nodes(self, view: View) -> list[Node]:
        """Return the nodes; all that have a program if none is named."""
        config = view.config
        named = [config.node(name) for name in self.node_names]
        return named or [one for one in config.named(Node) if program(config, one)]

    def check(self, view: View) -> None:
        """Refuse without a program, and for what is in use."""
        for node in self.nodes(view):
            if not program(view.config, node):
                raise BadInput(
                    f"nobody knows how to switch the power of node {node.name}",
                    hint=f"gnt-node modify --node-parameters oob_program=NAME "
                    f"{node.name}; the program lies in {OOB} on the master's node",
                )
            self._check_off(view, node)

    def _check_off(self, view: View, node: Node) -> None:
        if self.command not in ("power-off", "power-cycle"):
            return
        if node.uuid == view.config.cluster.master_node:
            raise WrongState(f"node {node.name} is the master's: it stays on")
        if self.command == "power-off" and not (node.offline or self.ignore_status):
            raise WrongState(
                f"node {node.name} is not marked offline",
                hint=f"gnt-node modify --offline=yes {node.name}; or: gnt-node power "
                f"--ignore-status off {node.name}",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Run each program on the master's node, and record what is on."""
        master = view.config.cluster.master_node
        for node in self.nodes(view):
            words = (self.command, node.name)
            name = program(view.config, node)
            yield Run(
                what=f"{self.command} of node {node.name}",
                node=master,
                do=RunScript(directory="oob", script=name, arguments=words),
            )
            powered = self.command != "power-off"
            if self.command.startswith("power-o") and node.powered != powered:
                what = f"record the power of node {node.name}"
                yield view.change(what, node, final=True, powered=powered)

    def result(self, view: View, results: Sequence[Any]) -> list[tuple[Named, Told]]:
        """Return each node's name, and what its program said; failures say why."""
        said = [one for one in results if isinstance(one, dict)]
        return [
            ((NORMAL, node.name), _told(self.command, one))
            for node, one in zip(self.nodes(view), said, strict=False)
        ]


def program(config: Config, node: Node) -> str:
    """Return the name of a node's out-of-band program; empty for none."""
    return PurePosixPath(str(filled(config, node).get("oob_program") or "")).name


def _told(command: str, said: dict[str, Any]) -> Told:
    if said["code"]:
        told = " ".join(str(said["output"]).split())
        return NO_DATA, f"exited with {said['code']}: {told}"
    if command not in ("health", "power-status"):
        return NORMAL, None
    try:
        return NORMAL, json.loads(said["output"])
    except ValueError:
        return NO_DATA, "it does not answer in JSON"


class RestrictedCommand(Operation, frozen=True, kw_only=True):
    """Run a script on nodes that their administrators put there for it.

    Attributes
    ----------
    command
        Name of the script.
    nodes
        Names or uuids.
    use_locking
        Whether nobody may work on the nodes meanwhile.
    """

    op_id = "OP_RESTRICTED_COMMAND"
    role = Role.ROOT

    command: str
    nodes: tuple[str, ...]
    use_locking: bool = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the nodes, if asked to."""
        for name in self.nodes if self.use_locking else ():
            yield Lock("node", view.config.node(name).uuid)

    def check(self, view: View) -> None:
        """Refuse names that are not known."""
        check_each_online(view.config, self.nodes)

    def tasks(self, view: View) -> Iterator[Task]:
        """Run it on each node in turn; one that fails stops no other."""
        order = RunScript(directory="restricted-commands", script=self.command)
        yield from on_each(view.config, self.nodes, f"run {self.command}", order)

    def result(self, _view: View, results: Sequence[Any]) -> list[tuple[bool, str]]:
        """Return for each node, in order, whether it worked, and what it printed."""
        return [
            (bool(one) and not one["code"], one["output"] if one else "")
            for one in results
        ]
