# SPDX-License-Identifier: BSD-2-Clause
"""Where an export lies that something is to be made of."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from moorage.errors import BadInput, NotFound, WrongState
from moorage.jobs import Lock, Question, View
from moorage.model import Config, Node
from moorage.model.export import Export, check_name

from . import dumps
from .remove import exports_of


class Source(Struct, frozen=True, kw_only=True):
    """An export as a request names it.

    Attributes
    ----------
    path
        Its name, or its directory.
    node
        Where it lies; the only node that has it, if it names none.
    wanted
        The node where it is to be read; None for where it lies.
    """

    path: str
    node: str | None = None
    wanted: str | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return check_name(PurePosixPath(self.path).name)

    def _holders(self, config: Config) -> list[Node]:
        if self.node:
            return [config.node(self.node)]
        return config.online()

    def readers(self, config: Config) -> list[Node]:
        """Return the nodes that are asked for it."""
        named = [config.node(self.wanted)] if self.wanted else []
        found = {node.uuid: node for node in (*self._holders(config), *named)}
        return list(found.values())

    def hold(self, config: Config) -> Iterator[Lock]:
        """Share it, and the nodes that may have it."""
        for node in self.readers(config):
            yield Lock("node", node.uuid, shared=True)
            yield dumps.hold(node, self.name, shared=True)

    def ask(self, config: Config) -> Iterator[Question]:
        """Ask the nodes for their exports."""
        for node in self.readers(config):
            yield dumps.exports_on(node)

    def find(self, view: View) -> tuple[Node, Export]:
        """Return the export, and the node that it is read on.

        Raises
        ------
        NotFound, BadInput, WrongState
            If it is nowhere, in several places, not readable, or elsewhere.
        """
        found = [
            (node, one)
            for node in self._holders(view.config)
            for one in exports_of(view, node)
            if one.name == self.name
        ]
        if not found:
            where = f" on node {self.node}" if self.node else ""
            raise NotFound(
                f"there is no export {self.name}{where}", hint="gnt-backup list"
            )
        self._check_one([export for _, export in found], [node for node, _ in found])
        node, export = self._nearest(view, found)
        if export.problem:
            raise BadInput(f"export {export.name} on {node.name}: {export.problem}")
        return node, export

    def _check_one(self, exports: list[Export], nodes: list[Node]) -> None:
        """Raise `BadInput` if nodes have different exports of the name."""
        uuids = {export.uuid for export in exports}
        if len(exports) > 1 and (len(uuids) > 1 or "" in uuids):
            told = ", ".join(node.name for node in nodes)
            raise BadInput(
                f"several nodes have an export {self.name}: {told}",
                hint="name one: --src-node",
            )

    def _nearest(
        self, view: View, found: list[tuple[Node, Export]]
    ) -> tuple[Node, Export]:
        """Return the export as the wanted node sees it, if one is named.

        A directory of exports may be shared: then it is one and the same there.
        """
        node, export = found[0]
        if not self.wanted:
            return node, export
        wanted = view.config.node(self.wanted)
        for one in exports_of(view, wanted):
            known = [known for known in found if known[1].uuid == one.uuid]
            if one.name == self.name and (wanted, one) in found:
                return wanted, one
            if one.name == self.name and one.uuid and known:
                return wanted, one
        raise WrongState(
            f"export {export.name} lies on node {node.name}, and nothing carries it to "
            f"node {wanted.name}",
            hint=f"-n {node.name}; then gnt-instance migrate or failover",
        )
