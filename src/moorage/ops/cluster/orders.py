# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster command`` and ``copyfile``: where nodes' administrators allow them."""

import binascii
from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Any

from moorage.errors import BadInput
from moorage.jobs import Operation, Run, Task, View
from moorage.model.caller import Role
from moorage.model.kinds import FileMode
from moorage.ops.asking.node_tasks import on_each
from moorage.ops.asking.silence import check_each_online, check_online
from moorage.protocol import PutFile, RunCommand, Said


class ClusterCommand(Operation, frozen=True, kw_only=True):
    """Run a command on nodes as root, where their administrators allow any.

    Attributes
    ----------
    nodes
        Names or uuids.
    command
        What a shell reads.
    """

    op_id = "OP_CLUSTER_COMMAND"
    role = Role.ROOT

    nodes: tuple[str, ...]
    command: str

    def check(self, view: View) -> None:
        """Refuse names that are not known."""
        if not self.command.strip():
            raise BadInput("there is no command")
        check_each_online(view.config, self.nodes)

    def tasks(self, view: View) -> Iterator[Task]:
        """Run it on each node in turn; one that fails stops no other."""
        order = RunCommand(command=self.command)
        yield from on_each(view.config, self.nodes, "run a command", order)

    def result(self, _view: View, results: Sequence[Any]) -> list[Said | None]:
        """Return for each node what the command printed; null if it was not run."""
        return list(results)


class ClusterCopyFile(Operation, frozen=True, kw_only=True):
    """Write a file on a node as root, where its administrator has listed the place.

    Attributes
    ----------
    path
        Where it is to be: absolute.
    node_name
        The node.
    file_content
        All of it, in Base64; no job shows it, and it is forgotten with the job's end.
    file_mode
        Who may read, write and run it: nine bits.
    """

    op_id = "OP_CLUSTER_COPY_FILE"
    role = Role.ROOT

    path: str
    node_name: str
    file_content: str
    file_mode: FileMode = 0o600

    def check(self, view: View) -> None:
        """Refuse a node that is not there, and what is no Base64."""
        check_online(view.config.node(self.node_name))
        self._content()

    def tasks(self, view: View) -> Iterator[Task]:
        """Write it."""
        node = view.config.node(self.node_name)
        content = self._content()
        yield Run(
            what=f"write {self.path} on {node.name}",
            node=node.uuid,
            do=PutFile(path=self.path, content=content, mode=self.file_mode),
        )

    def _content(self) -> bytes:
        try:
            return b64decode(self.file_content, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput("the content of the file is not in Base64") from None
