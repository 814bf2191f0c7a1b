# SPDX-License-Identifier: BSD-2-Clause
"""Verify that the master's state has copies, and that they are whole."""

from collections.abc import Iterator

from moorage.jobs import Ask, View
from moorage.model import Node
from moorage.ops.candidates import missing, promoted
from moorage.protocol import CopyStatus, GetCopies
from moorage.units import counted

from .observation import Finding, Seen


def copies_on(view: View) -> Ask[list[CopyStatus]]:
    """Ask the master what it knows of its copies."""
    return Ask(view.config.cluster.master_node, GetCopies())


def copies(seen: Seen) -> Iterator[Finding]:
    """Find copies that are behind, and a state that has too few."""
    for one in seen.view.told(copies_on(seen.view)) or []:
        if one.state == "behind":
            node = seen.config.node(one.node)
            few = one.commits
            lacks = "all commits" if few is None else counted(few, "commit")
            yield Finding(
                f"node {node.name}",
                f"its copy of the state is behind, and lacks {lacks} "
                f"({one.why}): a failover to it would lose them",
                f"gnt-node info {node.name}",
                warning=True,
            )
    yield from _too_few(seen)


def _too_few(seen: Seen) -> Iterator[Finding]:
    few = missing(seen.config)
    free = promoted(seen.config, seen.view.now)
    if few and free and seen.config.count(Node) > 1:
        yield Finding(
            "cluster",
            f"{counted(few, 'more node')} could keep a copy of the state",
            f"gnt-node modify -C yes {free[0].name}",
            warning=True,
        )
