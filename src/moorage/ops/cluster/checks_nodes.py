# SPDX-License-Identifier: BSD-2-Clause
"""Verify that all nodes answer, and speak the same language."""

from collections.abc import Iterator

from moorage import __version__
from moorage.ops.silence import way_out

from .finding import Finding, Seen


def silent(seen: Seen) -> Iterator[Finding]:
    """Find nodes that give no answer while nobody has said that they are off."""
    for uuid, error in seen.silent.items():
        node = seen.config.node(uuid)
        cause = error.facts.get("cause", error.message)
        yield Finding(
            f"node {node.name}",
            f"it gives no answer ({cause}), and is not marked offline",
            way_out(node, error),
        )


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
