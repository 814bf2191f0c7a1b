# SPDX-License-Identifier: BSD-2-Clause
"""Filters in their wire form: from nested lists to a predicate.

A comparison with a value that is missing is false; so its negation is true.
"""

import operator
from collections.abc import Callable
from typing import Any

from moorage.errors import BadInput
from moorage.model.pattern import Pattern

from .field import NORMAL, Field, Resource, cell
from .snapshot import Snapshot

Filter = list[Any]
Predicate = Callable[[Snapshot, Any], bool]
DEEPEST = 100
"""Levels of nesting that a filter may have."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def predicate(resource: Resource, wanted: object, depth: int = 0) -> Predicate:
    """Return the function that says whether an object fits a filter.

    Raises
    ------
    BadInput
        If it is no filter, or names a field that there is not.
    """
    if depth > DEEPEST:
        raise BadInput(f"the filter is nested more than {DEEPEST} levels deep")
    match wanted:
        case ["&" | "|" as sign, *parts]:
            tests = [predicate(resource, part, depth + 1) for part in parts]
            join = all if sign == "&" else any
            return lambda snapshot, one: join(test(snapshot, one) for test in tests)
        case ["!", part]:
            test = predicate(resource, part, depth + 1)
            return lambda snapshot, one: not test(snapshot, one)
        case ["?", str(name)]:
            return _holds(known(resource, name), bool)
        case [str(sign), str(name), value]:
            return _compared(sign, known(resource, name), value)
        case _:
            raise _not_a_filter(wanted)


def fields_in(resource: Resource, wanted: object) -> set[Field]:
    """Return the fields that a filter looks at."""
    match wanted:
        case ["&" | "|" | "!", *parts]:
            return {one for part in parts for one in fields_in(resource, part)}
        case [_, str(name), *_]:
            return {known(resource, name)}
        case _:
            raise _not_a_filter(wanted)


def known(resource: Resource, name: str) -> Field:
    """Return a field; raise `BadInput` if there is none."""
    found = resource.find(name)
    if found.kind == "unknown":
        raise BadInput(
            f"a filter names the field '{name}', which no {resource.name} has",
            hint=f"gnt-{resource.name} list-fields",
            field=name,
        )
    return found


def _compared(sign: str, field: Field, value: Any) -> Predicate:  # noqa: ANN401
    if sign in _COMPARE:
        compare = _COMPARE[sign]
        return _holds(field, lambda found: _agrees(compare, _number(found), value))
    if sign == "=~":
        pattern = Pattern(str(value))
        return _holds(field, lambda found: pattern.fits(str(found)))
    if sign == "=[]":
        return _holds(field, lambda found: _contains(found, value))
    raise BadInput(f"a filter has no operator '{sign}'")


def _holds(field: Field, claim: Callable[[Any], bool]) -> Predicate:
    def test(snapshot: Snapshot, one: Any) -> bool:  # noqa: ANN401
        status, value = cell(field.get(snapshot, one))
        return status == NORMAL and claim(value)

    return test


def _agrees(compare: Callable[[Any, Any], bool], left: object, right: object) -> bool:
    try:
        return bool(compare(left, right))
    except TypeError:
        return False  # a text is neither less nor more than a number


def _number(value: object) -> object:
    """Return a time of a job as seconds; anything else as it is."""
    match value:
        case (int(seconds), int(micro)):
            return seconds + micro / 1_000_000
    return value


def _contains(found: object, value: object) -> bool:
    return isinstance(found, list | tuple | dict) and value in found


def _not_a_filter(wanted: object) -> BadInput:
    text = repr(wanted)
    return BadInput(
        f"{text[:80]} is not a filter", hint='for example: ["==", "name", "web1"]'
    )
