# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on a storage as a whole."""

from moorage.errors import MoorageError
from moorage.node.commands import drive
from moorage.protocol import Listed, ListVolumes, Place, Report
from moorage.storage import Site
from moorage.storage.provider import usable
from moorage.storage.templates import template_named

from .context import NodeContext


async def volumes(at: NodeContext, args: ListVolumes, _report: Report) -> list[Listed]:
    """Return which volumes some storages have here; one that fails stops no other."""
    return [await _listed(at, place) for place in args.places]


async def _listed(at: NodeContext, place: Place) -> Listed:
    kind = template_named(place.template)
    needed = kind.capabilities.provider
    site = Site(
        node=at.name,
        settings=dict(place.settings),
        providers=usable(at.machine.providers()) if needed else {},
    )
    try:
        found = await drive(kind(site).volumes(dict(place.params)), at.run)
    except MoorageError as error:
        return Listed(problem=error.message)
    return Listed(volumes=found)


VERBS = (ListVolumes.done_by(volumes),)
"""Every verb on a storage."""
