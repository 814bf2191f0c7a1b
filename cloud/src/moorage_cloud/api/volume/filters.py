# SPDX-License-Identifier: BSD-2-Clause
"""Which of many things are wanted."""

import ast
import operator
from datetime import UTC, datetime
from functools import reduce
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.db.models.fields.json import KeyTransform

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
    for number, (key, value) in enumerate(wanted.items()):
        one = f"wanted_{number}"
        found = found.annotate(**{one: KeyTransform(str(key), column)})
        found = found.filter(**{one: str(value)})
    return found


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
    except ValueError:
        raise BadRequest(f"Invalid filter {text}: '{when}' is no moment") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
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
