# SPDX-License-Identifier: BSD-2-Clause
"""Which of many things are wanted."""

import ast
import operator
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import reduce
from typing import TypeVar
from uuid import UUID

from django.db import connections
from django.db.models import BooleanField, F, Func, Model, Q, QuerySet, Value

from moorage_cloud.api.wire.bodies import check_storable
from moorage_cloud.errors import BadRequest

Thing = TypeVar("Thing", bound=Model)
MOST = 32
"""Conditions in one filter, at most."""
_SIGNS = {"gt": "gt", "gte": "gte", "lt": "lt", "lte": "lte", "eq": "exact"}


def with_metadata(
    found: QuerySet[Thing], text: str | None, column: str = "metadata"
) -> QuerySet[Thing]:
    """Keep what has some metadata, told as a dictionary's text."""
    if text is None:
        return found
    try:
        wanted = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        wanted = None
    if not isinstance(wanted, dict):
        raise BadRequest(f"Invalid filter {column}: {text} is no dictionary")
    _check_few(column, len(wanted))
    check_storable(wanted)
    return _having(found, column, {str(key): str(item) for key, item in wanted.items()})


def _having(
    found: QuerySet[Thing],
    column: str,
    wanted: Mapping[str, str],
) -> QuerySet[Thing]:
    """Keep what has some items in a column of JSON.

    Django's own way takes a key of digits for the place in a list, and SQLite one with
    a dot, a quotation mark or an accent for another key.
    """
    if connections[found.db].features.supports_json_field_contains:
        return found.filter(**{f"{column}__contains": wanted})
    for key, item in wanted.items():
        found = found.filter(_has(column, key, item))
    return found


def _has(column: str, key: str, item: str) -> Func:
    """Return the condition that a column of JSON has an item, for SQLite."""
    wanted = Func(Value(key), Value(item), template="(%(expressions)s)")
    there = Func(
        F(column),
        template="(SELECT key, value FROM JSON_EACH(%(expressions)s))",
    )
    return Func(
        wanted,
        there,
        template="%(expressions)s",
        arg_joiner=" IN ",
        output_field=BooleanField(),
    )


def between(column: str, text: str | None) -> Q:
    """Return the condition of moments such as ``gt:2026-01-01T00:00:00,lt:…``."""
    if text is None:
        return Q()
    moments = text.split(",")
    _check_few(column, len(moments))
    return reduce(operator.and_, (_moment(column, one) for one in moments))


def _check_few(column: str, number: int) -> None:
    """Refuse more conditions than a database can take in one question."""
    if number > MOST:
        raise BadRequest(f"Invalid filter {column}: more than {MOST} conditions")


def _moment(column: str, text: str) -> Q:
    sign, _, when = text.partition(":")
    if sign not in _SIGNS and sign != "neq":
        sign, when = "eq", text
    try:
        moment = datetime.fromisoformat(when)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(
            UTC
        )
    except (ValueError, OverflowError):
        raise BadRequest(f"Invalid filter {text}: '{when}' is no moment") from None
    if sign == "neq":
        return ~Q(**{column: moment})
    return Q(**{f"{column}__{_SIGNS[sign]}": moment})


def equal(**wanted: object) -> Q:
    """Return the condition that columns are what is given; None asks for nothing."""
    return Q(**{name: value for name, value in wanted.items() if value is not None})


def as_uuid(text: str) -> UUID:
    """Return what a text says; of one that is no uuid, a uuid that nothing has."""
    try:
        return UUID(text)
    except ValueError:
        return UUID(int=0)
