# SPDX-License-Identifier: BSD-2-Clause
"""Pools by nodes: what queries of pools and nodes tell becomes rows and columns."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moorage.disk_templates import FACTS
from moorage.disk_templates import Reach as Reaches
from moorage.pictures.ink import Picture
from moorage.pictures.matrix import Cell, Column, Reach, Row, matrix
from moorage.web.visit import Page, Visit

from .planner import shown

_POOL: Final = (
    *("name", "template", "driver", "groups", "disk_cnt", "size"),
    *("free", "total", "rooms"),
)
_NODE: Final = ("name", "group", "offline", "silence", "vm_capable")


async def pools_by_nodes(visit: Visit) -> Page:
    """Show which node reaches which pool, and how full it is there."""
    pools, nodes = await asyncio.gather(
        visit.client.query("pool", _POOL), visit.client.query("node", _NODE)
    )
    picture = await asyncio.to_thread(drawn_of, pools.objects(), nodes.objects())
    command = "gnt-storage pool list -o name,driver,groups,disk_cnt,size,free,rooms"
    return shown(picture, command, [])


def drawn_of(
    pools: Sequence[Mapping[str, Any]], nodes: Sequence[Mapping[str, Any]]
) -> Picture:
    """Return the picture of rows of queries."""
    there = [node for node in nodes if node["vm_capable"]]
    there.sort(key=lambda node: str(node["group"]))
    rows = [
        Row(node["name"], node["group"], tuple(_cell(pool, node) for pool in pools))
        for node in there
    ]
    return matrix([_column(pool) for pool in pools], rows)


def _column(pool: Mapping[str, Any]) -> Column:
    template, driver = pool["template"], pool["driver"]
    return Column(
        pool["name"],
        template if driver == template else f"{template} {driver}",
        FACTS[template].reach is Reaches.GROUP,
        pool["disk_cnt"],
        pool["size"],
        pool["free"],
        pool["total"],
    )


def _cell(pool: Mapping[str, Any], node: Mapping[str, Any]) -> Cell:
    if node["group"] not in pool["groups"]:
        return Cell(Reach.NO)
    told = (pool["rooms"] or {}).get(node["name"])
    if told is not None:
        return Cell(Reach.YES, *told)
    return Cell(Reach.SILENT if node["offline"] or node["silence"] else Reach.NO)
