# SPDX-License-Identifier: BSD-2-Clause
"""What ``--disk`` says, for new instances and for those that are modified.

===========================  ===========================================================
``0:size=1G,provider=p``     (add) the first disk
``N:add,size=1G``            (modify) a new disk in slot N; ``add:...`` after the last
``N:attach,name=X``          one that exists; ``attach,name=X`` after the last
``N:detach``                 or NAME:detach, UUID:detach; ``detach`` alone: the last
``N:remove``                 likewise, and the data goes
``N:modify,mode=ro``         or ``N:mode=ro``
===========================  ===========================================================
"""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.option_syntax import (
    LAST,
    Action,
    action,
    change_key_values,
    epoch,
    numbered,
    spindles,
)
from moorage.errors import BadInput
from moorage.units import parse_size

Given = tuple[str, dict[str, Any]]
_ACTIONS = ("add", "attach", "modify", "remove", "detach")
_NUMBERS = (("size", parse_size), ("epoch", epoch), ("spindles", spindles))
_ALONE = ("add", "attach", "remove", "detach")


def disk_option(text: str) -> Given:
    """Return identifier and keys of ``--disk``; ``attach,name=X`` needs no colon.

    >>> disk_option("0:size=1G"), disk_option("attach,name=a")
    (('0', {'size': '1G'}), ('attach', {'name': 'a'}))
    """
    return change_key_values(text, _ALONE)


def new_disks(given: Sequence[Given]) -> list[dict[str, Any]]:
    """Return the disks of a new instance, in the order of their slots.

    Raises
    ------
    BadInput
        If a slot is not a number, stands twice, is left out, or has neither a size
        nor something to adopt.
    """
    found = numbered("--disk", "disk", given)
    slots = {slot: _new_disk(f"disk {slot}", keys) for slot, keys in found.items()}
    for number in range(len(slots)):
        if number not in slots:
            raise BadInput(
                f"disk {number} is left out",
                hint="number the disks from 0, without gaps",
            )
    return [slots[number] for number in sorted(slots)]


def _new_disk(word: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    if "size" in keys and "adopt" in keys and not keys.keys() & {"provider", "pool"}:
        raise BadInput(f"{word} has a size and is adopted: only one of these goes")
    if "size" not in keys and "adopt" not in keys:
        raise BadInput(f"{word} has no size", hint="--disk N:size=10G")
    return described(word, keys)


def described(word: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return a disk's keys as the master takes them: MiB, and texts for providers."""
    found = {key: str(value) for key, value in keys.items() if value is not None}
    found.update({key: "default" for key, value in keys.items() if value is None})
    numbers: dict[str, Any] = {}
    try:
        for name, convert in _NUMBERS:
            if name in found:
                numbers[name] = int(convert(found[name]))
    except BadInput as error:
        raise BadInput(f"{word}: {error.message}", hint=error.hint) from error
    return {**found, **numbers}


def changes(given: Sequence[Given]) -> list[Action]:
    """Return what to do with an instance's disks: (action, which, keys).

    ``which`` is a slot (-1: the last), a name or a uuid; the master resolves all of
    them against the state before the request, and says which keys an action takes.

    Raises
    ------
    BadInput
        If two actions are asked for at once, or a size is none.
    """
    return [_change(*action("--disk", one, _ACTIONS, _ALONE)) for one in given]


def _change(what: str, which: int | str, keys: Mapping[str, Any]) -> Action:
    word = f"disk {which}" if which != LAST else "the disk"
    told = _new_disk if what == "add" else described
    return what, which, told(word, keys)
