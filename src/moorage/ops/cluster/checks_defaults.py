# SPDX-License-Identifier: BSD-2-Clause
"""Verify that the cluster's defaults let disks and guests be made."""

from collections.abc import Iterator

from .defaults import problems
from .observation import Finding, Seen


def presets(seen: Seen) -> Iterator[Finding]:
    """Find defaults that no request could be met with."""
    for option, error in problems(seen.config.cluster):
        yield Finding(
            "cluster",
            f"the default that {option} sets stops new disks or guests: "
            f"{error.message}",
            "gnt-cluster info",
        )
