# SPDX-License-Identifier: BSD-2-Clause
"""Verify that nodes can have Ganeti's ``ssconf`` files, where the cluster has them."""

from collections.abc import Iterator

from moorage.jobs import Ask
from moorage.model import Config
from moorage.protocol import LookAtSsconf

from .observation import Finding, Seen


def ask(config: Config) -> Iterator[Ask[str]]:
    """Ask every node that is on whether root may write them there."""
    for node in config.online() if config.cluster.ssconf else ():
        yield Ask(node.uuid, LookAtSsconf())


def written(seen: Seen) -> Iterator[Finding]:
    """Find nodes whose files stay as they were, for the node refuses to write them."""
    for question in ask(seen.config):
        why = seen.view.told(question)
        if why:
            yield Finding(
                f"node {seen.config.node(question.node).name}",
                f"its ssconf files are not as the configuration is: {why}",
                "gnt-cluster modify --ssconf=no, if nobody reads them",
            )
