# SPDX-License-Identifier: BSD-2-Clause
"""What Ganeti's file says otherwise than an export would: kept with its object.

Keys that nobody here knows, keys that are not there though we would write them, values
that are written in another way. Each goes out again for as long as our own word is what
it was on the day of the import.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.model import Disk, Entity, Instance, Network, Node, NodeGroup

from .document import Part

Foreign = dict[str, tuple[Any, Any]]
"""Our word and the file's, by JSON pointer (RFC 6901); None for what is not there."""

PLACES: Mapping[str, type[Entity]] = {
    "nodegroups": NodeGroup,
    "networks": Network,
    "nodes": Node,
    "disks": Disk,
    "instances": Instance,
}
"""Where a document has objects by uuid; those first that others name."""


def noted(
    ours: Part, theirs: Part, but: frozenset[str] = frozenset()
) -> Foreign | None:
    """Return what the file says otherwise; None for nothing.

    Parameters
    ----------
    but
        Keys of which our word counts.
    """
    found = _differences("", _but(ours, but), _but(theirs, but))
    return dict(found) or None


def _but(part: Part, keys: frozenset[str]) -> Part:
    return {key: value for key, value in part.items() if key not in keys}


def _differences(
    at: str, ours: Part, theirs: Part
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for key in sorted(ours.keys() | theirs.keys()):
        our, their = ours.get(key), theirs.get(key)
        where = f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
        if isinstance(our, dict) and isinstance(their, dict):
            yield from _differences(where, our, their)
        elif our != their:
            yield where, (our, their)


def restored(part: Part, foreign: Foreign | None) -> Part:
    """Return a part with the file's own words, where ours are what they were."""
    found = dict(part)
    for where, (our, their) in (foreign or {}).items():
        *above, key = (
            one.replace("~1", "/").replace("~0", "~") for one in where.split("/")[1:]
        )
        holder: Any = found
        for one in above:
            inner = holder.get(one)
            if not isinstance(inner, dict):
                break
            holder[one] = dict(inner)
            holder = holder[one]
        else:
            _put(holder, key, our, their)
    return found


def _put(holder: Part, key: str, our: Any, their: Any) -> None:  # noqa: ANN401
    if holder.get(key) != our:
        return
    if their is None:
        holder.pop(key, None)
    else:
        holder[key] = their
