# SPDX-License-Identifier: BSD-2-Clause
"""The walk of a disk: its story, drawn."""

import asyncio
from collections.abc import Mapping
from typing import Any

from moorage.errors import BadInput
from moorage.pictures.ink import Picture
from moorage.pictures.walk import walk as walk_of
from moorage.web.kinds import DISK
from moorage.web.lookup import word_for
from moorage.web.values import address, moment
from moorage.web.visit import Page, Visit

from .planner import shown


async def walk(visit: Visit) -> Page:
    """Show the walk of the disk that the address names, were it gone."""
    disk = visit.asked("disk")
    if not disk:
        raise BadInput("the address does not say which disk: ?disk=NAME")
    told = await visit.client.story(disk)
    picture = await asyncio.to_thread(drawn_of, told)
    key = told["uuid"]
    up = [("The disk", address("disk", key))] if told["exists"] else []
    name = await word_for(visit, DISK, told["name"], key) if up else key
    return shown(picture, f"gnt-disk story {name}", up)


def drawn_of(told: Mapping[str, Any]) -> Picture:
    """Return the picture of a story."""
    return walk_of(told, moment, address)
