# SPDX-License-Identifier: BSD-2-Clause
"""Storage units as files and messages name them: type, key and further parameters.

The further parameters of a volume group say whether the node has exclusive storage: a
truth value is that, and no part of the name. ``drbd`` is another word for ``drbd8``.
"""

from collections.abc import Iterable
from typing import Final

from moorage.disk_templates import FACTS, Reach
from moorage.htools.fleet import Unit, UnitName

_ALIASES: Final = {one.name: one.unit for one in FACTS.values() if one.spellings}
_FLAGS: Final = {"true": True, "false": False}


def unit(
    words: Iterable[str | bool],
    free: int | None,
    total: int | None,
    *,
    shared: bool | None = None,
) -> Unit:
    """Return a storage unit.

    Parameters
    ----------
    words
        Type, key and what else there is.
    free, total
        MiB; None where nobody knows.
    shared
        Whether its room is one for all nodes; None to go by the type.
    """
    all_words = list(words)
    name = unit_name(all_words)
    alone = shared if shared is not None else _is_shared(name[0])
    return Unit(name, free, total, alone, exclusive=any(map(_flag, all_words[2:])))


def _is_shared(kind: str) -> bool:
    """Whether the room of a type of units is one for all nodes that have them."""
    found = (one for one in FACTS.values() if one.unit == kind)
    return any(one.reach is Reach.GROUP for one in found)


def unit_name(words: Iterable[str | bool]) -> UnitName:
    """Return what a unit is called."""
    kind, key, *more = words
    names = [str(word) for word in more if _flag(word) is None]
    return (_ALIASES.get(str(kind), str(kind)), str(key), *names)


def _flag(word: str | bool) -> bool | None:
    return word if isinstance(word, bool) else _FLAGS.get(word.lower())
