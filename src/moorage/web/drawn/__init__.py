# SPDX-License-Identifier: BSD-2-Clause
"""Pages that draw: what the client tells becomes the data of `moorage.pictures`."""

from collections.abc import Awaitable, Callable

from moorage.web.visit import Elsewhere, Page, Visit

from .matrix import pools_by_nodes
from .moving import moves
from .planner import Planner
from .walk import walk

Shows = Callable[[Visit], Awaitable[Page | Elsewhere]]


def pages(planner: Planner) -> tuple[dict[str, Shows], dict[str, Shows]]:
    """Return the pages of a door, and what takes forms, by the ends of addresses."""
    shown: dict[str, Shows] = {
        "survival": planner.survival,
        "balance": planner.balance,
        "pools-by-nodes": pools_by_nodes,
        "walk": walk,
        "moves": moves,
    }
    return shown, {"balance": planner.mover.run}
