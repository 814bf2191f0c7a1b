# SPDX-License-Identifier: BSD-2-Clause
"""What lists can be chosen by, 3.33: told from what the lists themselves declare."""

from collections.abc import Mapping

from msgspec import Struct

from moorage_cloud.api.wire.bodies import fields_of
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.pages import PageQuery
from moorage_cloud.api.wire.routes import Routes

from .attachments import AttachmentsQuery
from .messages import MessagesQuery
from .shapes import CountedQuery, VolumesQuery
from .snapshots import SnapshotsQuery
from .transfers import TransfersQuery
from .types import TypesQuery

routes = Routes()
LISTS: Mapping[str, type[PageQuery]] = {
    "volume": VolumesQuery,
    "snapshot": SnapshotsQuery,
    "attachment": AttachmentsQuery,
    "message": MessagesQuery,
    "volume_transfer": TransfersQuery,
    "volume_type": TypesQuery,
}
_NO_FILTERS = {"all_tenants", "SNF", *(one.key for one in fields_of(CountedQuery))}


class Filters(Struct, frozen=True):
    """What a list can be chosen by."""

    resource: str
    filters: list[str]


class ResourceFilters(Struct, frozen=True):
    """What lists can be chosen by."""

    resource_filters: list[Filters]


class ResourceQuery(Struct, frozen=True):
    """Which list is meant."""

    resource: str | None = None


@routes("GET", "/resource_filters", low="3.33")
def list_filters(call: Call, query: ResourceQuery) -> ResourceFilters:
    """List what lists can be chosen by."""
    return ResourceFilters(
        [
            Filters(
                name,
                [
                    one.key
                    for one in fields_of(kind)
                    if one.there(call.version)
                    and one.key not in _NO_FILTERS
                    and not one.key.endswith("~")
                ],
            )
            for name, kind in LISTS.items()
            if query.resource in {None, name}
        ]
    )
