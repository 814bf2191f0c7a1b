# SPDX-License-Identifier: BSD-2-Clause
"""Long lists in pages: how many, from where, in which order, where the next is."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from django.core.exceptions import ValidationError
from django.db.models import F, Model, Q, QuerySet
from django.http import HttpRequest
from msgspec import Meta, Struct

from moorage_cloud.errors import BadRequest, NotFound

from .address import address
from .discovery import Link
from .ordering import Behind

Thing = TypeVar("Thing", bound=Model)
MOST = 1000
"""Things on a page, at most."""


class PageQuery(Struct, frozen=True, kw_only=True):
    """What part of a list is wanted, in which order.

    Attributes
    ----------
    marker
        The id of the last thing on the page before.
    sort
        ``KEY:asc`` or ``KEY:desc``, several with commas.
    """

    limit: Annotated[int, Meta(ge=0)] | None = None
    offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    marker: str | None = None
    sort: str | None = None
    sort_key: str | None = None
    sort_dir: str | None = None


class Page(Struct):
    """A part of a list.

    Attributes
    ----------
    links
        Where the next one is; empty for the last.
    count
        Of all pages; None if nobody asked.
    """

    things: Sequence[Any]
    links: list[Link]
    count: int | None


def paged(
    found: QuerySet[Thing],
    query: PageQuery,
    request: HttpRequest,
    keys: Mapping[str, str],
    *,
    counted: bool = False,
) -> Page:
    """Return a page of what was found.

    Parameters
    ----------
    keys
        What can be sorted by, ``created_at`` among it, and the columns for that, none
        of which may be null.
    counted
        Whether all are to be counted.

    Raises
    ------
    BadRequest
        If it cannot be sorted so.
    NotFound
        If the marker is nothing of the list.
    """
    count = found.count() if counted else None
    order = _order(query, keys)
    if query.marker:
        found = found.filter(_behind(found, query.marker, order))
    limit = MOST if query.limit is None else min(query.limit, MOST)
    columns = [F(name).desc() if down else F(name).asc() for name, down in order]
    things = list(found.order_by(*columns)[query.offset : query.offset + limit])
    full = bool(things) and len(things) == limit
    return Page(things, [_next(request, things[-1])] if full else [], count)


def _order(query: PageQuery, keys: Mapping[str, str]) -> list[tuple[str, bool]]:
    """Return columns, and whether each goes down; the last is no two things' same."""
    if query.sort is not None and (query.sort_key or query.sort_dir):
        raise BadRequest(
            "The 'sort_key' and 'sort_dir' parameters are deprecated and cannot be "
            "used with the 'sort' parameter."
        )
    wanted = query.sort
    if wanted is None:
        wanted = f"{query.sort_key or 'created_at'}:{query.sort_dir or 'desc'}"
    found = []
    words = wanted.split(",")
    if len(words) > len(keys):
        raise BadRequest("Invalid input received: a list has not so many sort keys")
    for one in words:
        key, _, direction = one.strip().partition(":")
        if key not in keys:
            raise BadRequest(f"Invalid input received: Invalid sort key: {key}")
        if direction not in {"", "asc", "desc"}:
            raise BadRequest(
                "Invalid input received: Invalid sort direction: " + direction
            )
        found.append((keys[key], direction != "asc"))
    # What is equal comes in the order of its making, and no two things are the same.
    ties = [keys["created_at"], "pk"]
    known = {name for name, _ in found}
    return found + [(name, found[0][1]) for name in ties if name not in known]


def _behind(
    found: QuerySet[Thing], marker: str, order: list[tuple[str, bool]]
) -> Q | Behind:
    """Return what is behind a marker: after it in the first column that differs."""
    try:
        last = (
            found.values_list(*(name for name, _ in order)).filter(uuid=marker).first()
        )
    except (ValueError, TypeError, ValidationError):
        last = None
    if last is None:
        raise NotFound(f"Marker {marker} could not be found.")
    directions = {down for _, down in order}
    if len(directions) == 1:
        names = [name for name, _ in order]
        return Behind(names, last, down=directions.pop())
    behind, same = Q(), Q()
    for (name, down), value in zip(order, last, strict=True):
        sign = "lt" if down else "gt"
        behind |= same & Q(**{f"{name}__{sign}": value})
        same &= Q(**{name: value})
    # Said once more of the first column alone, so that an index leads there.
    (first, down), value = order[0], last[0]
    return behind & Q(**{f"{first}__{'lte' if down else 'gte'}": value})


def _next(request: HttpRequest, last: Any) -> Link:  # noqa: ANN401 - any model
    query = {key: values[-1] for key, values in request.GET.lists()}
    query.pop("offset", None)
    query["marker"] = str(last.uuid)
    return Link("next", address(request, f"?{urlencode(query)}"))
