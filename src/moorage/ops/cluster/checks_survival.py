# SPDX-License-Identifier: BSD-2-Clause
"""Whether the cluster survives the loss of any one node: what hcheck says."""

from collections.abc import Iterator

from moorage.ops import placement
from moorage.units import shortened

from .observation import Finding, Seen

CODE = "ENODESHAREDN1"
"""Ganeti's ENODEN1 is an error, about mirrored disks; this is a notice."""
_SHOWN = 5


def losses(seen: Seen) -> Iterator[Finding]:
    """Find the nodes whose loss would leave an instance without a place."""
    for node, names in sorted(placement.stranded(seen.view, seen.facts).items()):
        yield Finding(
            f"node {node}",
            "if it were lost, there would be no place to restart "
            f"{shortened(names, _SHOWN)}",
            hint="hcheck tells more; hbal may help",
            warning=True,
            code=CODE,
        )
