# SPDX-License-Identifier: BSD-2-Clause
"""From a filter to objects: those that a name stands for are found without a scan."""

from collections.abc import Iterable
from typing import Any

from .field import Resource
from .qfilter import Filter, Predicate, fields_in, predicate
from .snapshot import Snapshot


def candidates(
    resource: Resource, snapshot: Snapshot, wanted: object
) -> list[Any] | None:
    """Return objects among which all that fit are; None for "any of them".

    The cost is that of the names in the filter, at any size of cluster.
    """
    match wanted:
        case ["=" | "==", str(name), value] if name in resource.keys:
            return list(resource.keys[name](snapshot, value))
        case ["|", *parts] if parts:
            found = [candidates(resource, snapshot, part) for part in parts]
            if any(one is None for one in found):
                return None
            return _once(item for one in found for item in one or ())
        case ["&", *parts]:
            limits = (candidates(resource, snapshot, part) for part in parts)
            return next((one for one in limits if one is not None), None)
    return None


def _once(found: Iterable[Any]) -> list[Any]:
    return list({id(one): one for one in found}.values())


def check_known(resource: Resource, snapshot: Snapshot, wanted: object) -> None:
    """Raise `NotFound` if a filter of names alone has one that nothing goes by."""
    names = names_in(resource, wanted)
    for value, fields in (names or {}).items():
        if not any(list(resource.keys[name](snapshot, value)) for name in fields):
            raise resource.absent(snapshot, value)


def names_in(resource: Resource, wanted: object) -> dict[Any, set[str]] | None:
    """Return the fields that each value may stand in, for a filter of names alone."""
    match wanted:
        case ["=" | "==", str(name), str() | int() as value] if name in resource.keys:
            return {value: {name}}
        case ["|", *parts] if parts:
            merged: dict[Any, set[str]] = {}
            for part in parts:
                names = names_in(resource, part)
                if names is None:
                    return None
                for value, fields in names.items():
                    merged.setdefault(value, set()).update(fields)
            return merged
    return None


def with_full_names(resource: Resource, snapshot: Snapshot, wanted: Any) -> Any:  # noqa: ANN401
    """Return a filter of names alone that fits what short names, too, stand for.

    And what ``INSTANCE/NAME`` does, which is nobody's name.
    """
    if names_in(resource, wanted) is None:
        return wanted
    if wanted[0] == "|":
        parts = wanted[1:]
        return ["|", *(with_full_names(resource, snapshot, part) for part in parts)]
    sign, name, value = wanted
    if name != "name" or not isinstance(value, str):
        return wanted
    found = list(resource.keys[name](snapshot, value))
    if len(found) != 1 or found[0].name == value:
        return wanted
    if "uuid" in resource.keys:
        return [sign, "uuid", found[0].uuid]
    return [sign, name, found[0].name]


class Selection:
    """A filter, split into what the configuration answers and what nodes must.

    Attributes
    ----------
    needs_live
        Whether nodes must be asked before the objects are known.
    """

    def __init__(self, resource: Resource, wanted: Filter | None) -> None:
        self._resource = resource
        self._wanted = wanted
        self._static: list[Predicate] = []
        self._live: list[Predicate] = []
        for part in _conjuncts(wanted):
            test = predicate(resource, part)
            live = any(one.live for one in fields_in(resource, part))
            (self._live if live else self._static).append(test)

    @property
    def needs_live(self) -> bool:
        """Whether nodes must be asked before the objects are known."""
        return bool(self._live)

    def first(self, snapshot: Snapshot) -> list[Any]:
        """Return the objects that fit as far as the configuration says, in order."""
        few = candidates(self._resource, snapshot, self._wanted)
        found = self._resource.every(snapshot) if few is None else few
        fit = [
            one for one in found if all(test(snapshot, one) for test in self._static)
        ]
        if few is None or names_in(self._resource, self._wanted) is not None:
            return fit  # in the order in which they were named, as Ganeti does
        return sorted(fit, key=self._resource.order)

    def second(self, snapshot: Snapshot, found: list[Any]) -> list[Any]:
        """Return those of `found` that fit what the nodes said, too."""
        return [one for one in found if all(test(snapshot, one) for test in self._live)]


def _conjuncts(wanted: Filter | None) -> list[Any]:
    match wanted:
        case None:
            return []
        case ["&", *parts]:
            return parts
    return [wanted]
