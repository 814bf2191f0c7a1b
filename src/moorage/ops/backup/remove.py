# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-backup remove`` and ``verify``: exports that lie on nodes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from moorage.errors import NotFound
from moorage.jobs import Lock, Operation, Question, Run, Task, View
from moorage.model import Config, Node
from moorage.model.caller import Role
from moorage.model.export import HALF_MADE, REPLACED, Export, check_name
from moorage.protocol import RemoveExport, VerifyExport

from . import dumps


class OnExports(Operation, frozen=True, kw_only=True):
    """An operation on the exports of one name.

    Attributes
    ----------
    instance_name
        Of the instance, or ``disk+LABEL`` for a disk that was exported alone.
    node
        Where it lies; every node that has one, if it names none.
    """

    instance_name: str
    node: str | None = None

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the exports; share the nodes."""
        for node in self._nodes(view.config):
            yield Lock("node", node.uuid, shared=True)
            yield dumps.hold(node, self.instance_name)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask which nodes have one."""
        for node in self._nodes(view.config):
            yield dumps.exports_on(node)

    def check(self, view: View) -> None:
        """Refuse what is nowhere."""
        check_name(self.instance_name)
        if not self.found(view):
            where = f"node {self.node}" if self.node else "any node"
            raise nowhere(
                view, f"{self.instance_name} on {where}", self._nodes(view.config)
            )

    def found(self, view: View) -> list[tuple[Node, Export]]:
        """Return the exports of this name, each with its node."""
        return [
            (node, export)
            for node in self._nodes(view.config)
            for export in exports_of(view, node)
            if self._named(export)
        ]

    def _named(self, export: Export) -> bool:
        return export.name == self.instance_name

    def _nodes(self, config: Config) -> list[Node]:
        if self.node:
            return [config.node(self.node)]
        return config.online()

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes gave no answer: they may have one, too."""
        told = _silent(view, self._nodes(view.config))
        if told:
            yield f"no answer came from {told}: what lies there is not known"


def exports_of(view: View, node: Node) -> list[Export]:
    """Return the exports of a node; none of one that gave no answer."""
    return view.told(dumps.exports_on(node)) or []


def nowhere(view: View, what: str, nodes: Iterable[Node]) -> NotFound:
    """Return the error of an export that no node has which was asked for it.

    Parameters
    ----------
    what
        Its name, and where it was to be.
    """
    told = _silent(view, nodes)
    more = f"; no answer came from {told}" if told else ""
    return NotFound(f"there is no export {what}{more}", hint="gnt-backup list")


def _silent(view: View, nodes: Iterable[Node]) -> str:
    lost = [one.name for one in nodes if not view.reached(dumps.exports_on(one))]
    return ", ".join(lost)


class BackupRemove(OnExports, frozen=True, kw_only=True):
    """Delete an export, and what a half-made one left."""

    op_id = "OP_BACKUP_REMOVE"

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold also what it may come of: it may be on its way for somebody."""
        yield from OnExports.locks(self, view)
        whole = dumps.origin(self.instance_name)
        for node in self._nodes(view.config) if whole else ():
            yield dumps.hold(node, whole)

    def _named(self, export: Export) -> bool:
        return (
            export.name.removesuffix(HALF_MADE).removesuffix(REPLACED)
            == self.instance_name
        )

    def tasks(self, view: View) -> Iterator[Task]:
        """Delete one after the other; there is no way back."""
        nodes = {node.uuid: node for node, _ in self.found(view)}
        for node in nodes.values():
            yield Run(
                what=f"remove export {self.instance_name} on {node.name}",
                node=node.uuid,
                do=RemoveExport(name=self.instance_name),
                final=True,
            )
            yield dumps.tidy(self.instance_name, node)


class BackupVerify(OnExports, frozen=True, kw_only=True):
    """Compare the dumps of an export with the checksums of its manifest."""

    op_id = "OP_BACKUP_VERIFY"
    role = Role.READ

    def tasks(self, view: View) -> Iterator[Task]:
        """Let each node compare its own."""
        for node, export in self.found(view):
            yield Run(
                what=f"verify export {export.name} on {node.name}",
                node=node.uuid,
                do=VerifyExport(name=export.name, uuid=export.uuid),
            )

    def result(self, view: View, results: Sequence[Any]) -> dict[str, list[str]]:
        """Return what is wrong with it, by node; nothing where all is well."""
        pairs = zip(self.found(view), results, strict=True)
        return {node.name: told for (node, _), told in pairs}
