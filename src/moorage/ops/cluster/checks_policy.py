# SPDX-License-Identifier: BSD-2-Clause
"""Verify that instances are of the sizes that their node group takes."""

from collections.abc import Iterator

from moorage.model import NodeGroup, ipolicy
from moorage.ops.policy import outside

from .observation import Finding, Seen


def sizes(seen: Seen) -> Iterator[Finding]:
    """Find instances that were made or changed in spite of the policy, or before it."""
    for group in seen.config.named(NodeGroup):
        rules = ipolicy.group_policy(seen.config.cluster, group)
        for name, why in outside(seen.config, group, rules).items():
            yield Finding(
                f"instance {name}",
                f"it breaks the instance policy of node group {group.name}: {why}",
                f"gnt-group info {group.name}",
                warning=True,
            )
