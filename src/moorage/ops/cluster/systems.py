# SPDX-License-Identifier: BSD-2-Clause
"""What a cluster says of OS definitions: parameters, and which are offered."""

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.errors import BadInput, NotFound
from moorage.jobs import View
from moorage.model import Node, Os
from moorage.ops.asking.node_tasks import oses_on
from moorage.ops.merging import merged

from . import defaults

Parameters = Mapping[str, Mapping[str, Any]]
Pairs = Iterable[tuple[str, str]]


def parameters(old: Parameters, new: Parameters) -> dict[str, dict[str, Any]]:
    """Return parameters by OS; one that has none left is not kept."""
    names = sorted({*old, *new})
    made = {one: merged(old.get(one, {}), new.get(one, {})) for one in names}
    return {name: given for name, given in made.items() if given}


def hypervisors(
    old: Mapping[str, Parameters], new: Mapping[str, Parameters]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return parameters by OS and hypervisor; raise `BadInput` for one there is not."""
    for given in new.values():
        for hypervisor, own in given.items():
            defaults.check_hvparams(hypervisor, own)
    names = sorted({*old, *new})
    made = {one: parameters(old.get(one, {}), new.get(one, {})) for one in names}
    return {name: given for name, given in made.items() if given}


def listed(old: tuple[str, ...], pairs: Pairs) -> tuple[str, ...]:
    """Return names with changes: pairs of ``add`` or ``remove`` and a name."""
    names = list(old)
    for verb, name in pairs:
        if verb not in ("add", "remove"):
            raise BadInput(f"an OS is listed by 'add' or 'remove', not '{verb}'")
        names = [one for one in names if one != name]
        names += [name] if verb == "add" else []
    return tuple(names)


def named(
    os_hvp: Mapping[str, Parameters] | None,
    osparams: Iterable[Parameters | None],
    listed: Iterable[Pairs],
) -> dict[str, set[str]]:
    """Return the OS definitions that a change relies on, with their parameters.

    What is dropped may be of one that is gone.
    """
    found: dict[str, set[str]] = {name: set() for name in os_hvp or ()}
    for name, given in (pair for one in osparams for pair in (one or {}).items()):
        kept = {key for key, value in given.items() if value not in (None, "default")}
        if kept:
            found.setdefault(name, set()).update(kept)
    for verb, name in (pair for one in listed for pair in one):
        if verb == "add":
            found.setdefault(name, set())
    return found


def check_known(
    view: View, nodes: Iterable[Node], wanted: Mapping[str, Iterable[str]]
) -> None:
    """Refuse definitions, and parameters, that no node knows.

    Raises
    ------
    NotFound
        If there is no such definition on any node that answers.
    BadInput
        If there is, and it has no such parameter.
    """
    if not wanted:
        return
    there = _there(view, nodes)
    for name, keys in wanted.items():
        known = [one for one in there if one.name == name.partition("+")[0]]
        if not known:
            raise NotFound(
                f"no node has an OS '{name}': there is "
                f"{', '.join(sorted({one.name for one in there})) or 'none'}",
                hint="gnt-os list; gnt-os modify -f takes one that is yet to come",
            )
        if not all(one.verifies for one in known):
            continue
        offered = {key for one in known for key in one.parameters}
        unknown = sorted(set(keys) - offered)
        if unknown:
            raise BadInput(
                f"OS '{name}' has no parameter '{unknown[0]}': there is "
                f"{', '.join(sorted(offered)) or 'none'}",
                hint=f"gnt-os info {name}",
            )


def _there(view: View, nodes: Iterable[Node]) -> list[Os]:
    told = (view.told(oses_on(node.uuid)) or () for node in nodes)
    return [one for here in told for one in here if one.valid]
