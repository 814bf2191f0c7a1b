# SPDX-License-Identifier: BSD-2-Clause
"""Pages that draw: what the client tells becomes the data of `moorage.pictures`."""

from collections.abc import Awaitable, Callable

from moorage.web.visit import Page, Visit

from .matrix import pools_by_nodes
from .planner import Planner
from .walk import walk


def pages() -> dict[str, Callable[[Visit], Awaitable[Page]]]:
    """Return the pages of a door, by the end of their addresses."""
    planner = Planner()
    return {
        "survival": planner.survival,
        "balance": planner.balance,
        "pools-by-nodes": pools_by_nodes,
        "walk": walk,
    }
