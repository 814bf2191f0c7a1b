# SPDX-License-Identifier: BSD-2-Clause
"""Verbs about Ganeti's ``ssconf`` files on this node."""

from moorage.errors import NotSupported
from moorage.node.records.ssconf import SsconfFiles
from moorage.protocol import LookAtSsconf, Report, RestoreSsconf, WriteSsconf

from .context import NodeContext


async def look(at: NodeContext, _args: LookAtSsconf, _report: Report) -> str:
    """Return why the files cannot be written here; empty if they can."""
    return files(at).problem()


async def write(at: NodeContext, args: WriteSsconf, _report: Report) -> None:
    """Write the files."""
    files(at).write(args.files)


async def restore(at: NodeContext, _args: RestoreSsconf, _report: Report) -> None:
    """Bring Ganeti's own back."""
    files(at).restore()


def files(at: NodeContext) -> SsconfFiles:
    """Return where this node has them; raise `NotSupported` if it has no place."""
    if at.machine.ssconf is None:
        raise NotSupported(f"node {at.name} has no place for ssconf files")
    return at.machine.ssconf


VERBS = (
    LookAtSsconf.done_by(look),
    WriteSsconf.done_by(write),
    RestoreSsconf.done_by(restore),
)
"""Every verb about these files."""
