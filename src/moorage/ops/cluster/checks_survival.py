# SPDX-License-Identifier: BSD-2-Clause
"""Whether the cluster survives the loss of any one node: what hcheck says.

That nodes have the memory for a failover of mirrored instances is Ganeti's check, and
an error. That everybody finds a place, on shared storage, too, is a notice.
"""

from collections.abc import Iterator

from moorage.ops.planning import placement
from moorage.units import shortened

from .observation import Finding, Seen

CODE = "ENODESHAREDN1"
"""Of the notice: Ganeti has none."""
_SHOWN = 5


def failovers(seen: Seen) -> Iterator[Finding]:
    """Find nodes without the memory for those whose second copies they keep."""
    for one in placement.short_of_memory(seen.view, seen.facts):
        yield Finding(
            f"node {one.node}",
            "not enough memory to accommodate instance failovers should node "
            f"{one.lost} fail ({one.needed} MiB needed, {one.free} MiB available)",
            hint="hcheck tells more; hbal may help",
        )


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
