# SPDX-License-Identifier: BSD-2-Clause
"""Verify that all nodes answer, and speak the same language."""

from collections.abc import Iterator

from moorage import __version__
from moorage.errors import MoorageError, Stale, cause_of
from moorage.ops.asking.silence import way_out
from moorage.units import counted

from .observation import Finding, Seen


def silent(seen: Seen) -> Iterator[Finding]:
    """Find nodes that give no answer while nobody has said that they are off."""
    for uuid, error in seen.silent.items():
        if _refuses_master(error):
            continue
        node = seen.config.node(uuid)
        yield Finding(
            f"node {node.name}",
            f"it gives no answer ({cause_of(error)}), and is not marked offline",
            way_out(node, error),
        )


def masters(seen: Seen) -> Iterator[Finding]:
    """Find nodes that refuse this master, for another one has spoken to them.

    One node's word is not enough to stop a master: its key may be stolen. When none
    takes this master for the one that leads, it is not.
    """
    refusing = {u: e for u, e in seen.silent.items() if _refuses_master(e)}
    if refusing and not seen.facts:
        yield Finding(
            "cluster",
            f"this is not the cluster's master: another one was "
            f"heard by {counted(len(refusing), 'node')}, and none listens to this one",
            "moorage master stop",
        )
    for uuid, error in refusing.items():
        node = seen.config.node(uuid)
        others = f"; {len(seen.facts)} other nodes take orders" if seen.facts else ""
        yield Finding(
            f"node {node.name}",
            f"{error.message}{others}",
            f"if there is no other master, do not trust it: gnt-node info {node.name}",
        )


def _refuses_master(error: MoorageError) -> bool:
    return isinstance(error, Stale) and "term" in error.facts


def versions(seen: Seen) -> Iterator[Finding]:
    """Find agents of another version than the master."""
    for node, facts in seen.nodes():
        if facts.version != __version__:
            yield Finding(
                f"node {node.name}",
                f"its agent has version {facts.version}, the master {__version__}",
                "install the same version on all nodes",
                warning=True,
            )
