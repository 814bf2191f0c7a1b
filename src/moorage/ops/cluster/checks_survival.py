# SPDX-License-Identifier: BSD-2-Clause
"""Whether the cluster survives the loss of any one node: what hcheck says."""

from collections.abc import Iterator

from moorage.ops import placement

from .observation import Finding, Seen

CODE = "ENODESHAREDN1"
"""Ganeti's ENODEN1 is an error, about mirrored disks; this is a notice."""
_SHOWN = 5


def losses(seen: Seen) -> Iterator[Finding]:
    """Find the nodes whose loss would leave an instance without a place."""
    for node, names in sorted(placement.stranded(seen.view, seen.facts).items()):
        told = ", ".join(names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield Finding(
            f"node {node}",
            f"if it were lost, there would be no place to restart {told}{more}",
            hint="hcheck tells more; hbal may help",
            warning=True,
            code=CODE,
        )
