# SPDX-License-Identifier: BSD-2-Clause
"""Where an export lies that something is to be made of."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from moorage.errors import BadInput
from moorage.jobs import Lock, Question, View
from moorage.model import Config, Node
from moorage.model.export import Export, check_name

from . import dumps
from .carrying import Found
from .remove import exports_of, nowhere


class Source(Struct, frozen=True, kw_only=True):
    """An export as a request names it.

    Attributes
    ----------
    path
        Its name, or its directory.
    node
        Where it lies; the only node that has it, if it names none.
    """

    path: str
    node: str | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return check_name(PurePosixPath(self.path).name)

    def _holders(self, config: Config) -> list[Node]:
        if self.node:
            return [config.node(self.node)]
        return config.online()

    def readers(self, config: Config, others: Iterable[Node]) -> list[Node]:
        """Return the nodes that are asked for it: some may see what another one has."""
        found = {node.uuid: node for node in (*self._holders(config), *others)}
        return list(found.values())

    def hold(self, config: Config, others: Iterable[Node]) -> Iterator[Lock]:
        """Share it, and the nodes that may have it or get it."""
        for node in self.readers(config, others):
            yield Lock("node", node.uuid, shared=True)
            yield dumps.hold(node, self.name, shared=True)

    def ask(self, config: Config, others: Iterable[Node]) -> Iterator[Question]:
        """Ask the nodes for their exports."""
        for node in self.readers(config, others):
            yield dumps.exports_on(node)

    def find(self, view: View) -> Found:
        """Return the export, with a node where it lies.

        Raises
        ------
        NotFound, BadInput
            If it is nowhere, in several places, or not readable.
        """
        found = [
            (node, one)
            for node in self._holders(view.config)
            for one in exports_of(view, node)
            if one.name == self.name
        ]
        if not found:
            where = f" on node {self.node}" if self.node else ""
            raise nowhere(view, f"{self.name}{where}", self._holders(view.config))
        self._check_one([export for _, export in found], [node for node, _ in found])
        node, export = found[0]
        if export.problem:
            raise BadInput(f"export {export.name} on {node.name}: {export.problem}")
        return Found(node=node.uuid, export=export)

    def _check_one(self, exports: list[Export], nodes: list[Node]) -> None:
        """Raise `BadInput` if nodes have different exports of the name."""
        uuids = {export.uuid for export in exports}
        if len(exports) > 1 and (len(uuids) > 1 or "" in uuids):
            told = ", ".join(node.name for node in nodes)
            raise BadInput(
                f"several nodes have an export {self.name}: {told}",
                hint="name one: --src-node",
            )
