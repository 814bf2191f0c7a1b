# SPDX-License-Identifier: BSD-2-Clause
"""Pages that draw: what the client tells becomes the data of `moorage.pictures`."""

from collections.abc import Awaitable, Callable

from moorage.web.visit import Page, Visit

from .matrix import pools_by_nodes
from .planner import balance, survival
from .walk import walk

PAGES: dict[str, Callable[[Visit], Awaitable[Page]]] = {
    "survival": survival,
    "balance": balance,
    "pools-by-nodes": pools_by_nodes,
    "walk": walk,
}
"""Each page, by the end of its address."""

__all__ = ["PAGES", "balance", "pools_by_nodes", "survival", "walk"]
