# SPDX-License-Identifier: BSD-2-Clause
"""What ``--net`` and ``--nic-parameters`` say.

===========================  ===========================================================
``0:link=br0,ip=10.0.0.5``   (add) the first card
``N:add,network=lan``        (modify) a new card at N; ``add:...`` after the last
``N:remove``                 or NAME:remove, UUID:remove; ``remove`` alone: the last
``N:modify,link=br1``        or ``N:link=br1``
===========================  ===========================================================
"""

from collections.abc import Sequence
from typing import Any

from moorage.errors import BadInput

from .command import Call, Option
from .fields import fill
from .option_syntax import (
    Action,
    action,
    change_key_values,
    ident_key_values,
    key_values,
    numbered,
)

Given = tuple[str, dict[str, Any]]
_ACTIONS = ("add", "modify", "remove")
_ALONE = ("add", "remove")
_MOST = 99
"""The largest number of a card that is worth asking the master about."""


def net_option(text: str) -> Given:
    """Return identifier and keys of ``--net``; ``add,link=br0`` needs no colon.

    >>> net_option("0:link=br0"), net_option("add,link=br0")
    (('0', {'link': 'br0'}), ('add', {'link': 'br0'}))
    """
    return change_key_values(text, _ALONE)


def new_cards(call: Call) -> list[dict[str, Any]] | None:
    """Return the network cards that ``--net`` describes; None if nothing says so.

    Raises
    ------
    BadInput
        If a number is none, or stands twice.
    """
    given = call.option("net")
    if call.option("no_nics"):
        if given:
            raise BadInput("--no-nics and --net do not go together")
        return []
    if not given:
        return None
    found = numbered("--net", "card", given)
    if max(found) > _MOST:
        raise BadInput(f"no instance has so many cards: --net {max(found)}:...")
    return [found.get(number, {}) for number in range(max(found) + 1)]


def changes(given: Sequence[Given]) -> list[Action]:
    """Return what to do with an instance's cards: (action, which, keys).

    The master says which keys an action takes.

    Raises
    ------
    BadInput
        If two actions are asked for at once.
    """
    return [action("--net", one, _ACTIONS, _ALONE) for one in given]


def _params(text: str) -> dict[str, str]:
    """Return how cards are connected, as text."""
    return {k: "" if v is None else str(v) for k, v in key_values(text).items()}


DEFAULTS = fill("-N/--nic-parameters=nicparams", convert=_params)
MODIFIED = fill(
    "--net=nics",
    help="N:add,link=..., N:remove, N:modify,...; N may be a name or uuid where the "
    "card is there already; mac=, ip=, name=, network=, mode=, link=, vlan=, "
    "filter=",
    metavar="N:ACTION,KEY=VALUE,...",
    convert=net_option,
    repeats=True,
    join=changes,
)
NEW = Option(
    ("--net",),
    "a network card: mac=, ip=, name=, network=, mode=, link=, vlan=, filter=",
    "N:KEY=VALUE,...",
    ident_key_values,
    repeats=True,
)
CONFLICTS = fill(
    "--no-conflicts-check=conflicts_check",
    help="let an address be one of a network that it is not in",
    value=False,
)
