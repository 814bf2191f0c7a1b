# SPDX-License-Identifier: BSD-2-Clause
"""What a cluster says of OS definitions: parameters, and which are offered."""

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.errors import BadInput, NotFound
from moorage.jobs import View
from moorage.model import Cluster, Node, Os
from moorage.ops.merging import merged
from moorage.ops.node_tasks import oses_on

from . import defaults

Parameters = Mapping[str, Mapping[str, Any]]
Pairs = Iterable[tuple[str, str]]


def changes(
    cluster: Cluster,
    *,
    os_hvp: Mapping[str, Parameters] | None,
    osparams: Parameters | None,
    osparams_private_cluster: Parameters | None,
    hidden_os: Pairs,
    blacklisted_os: Pairs,
) -> dict[str, Any]:
    """Return the fields of the cluster that change.

    Parameters
    ----------
    os_hvp, osparams, osparams_private_cluster
        By OS; the value ``default`` drops a parameter.
    hidden_os, blacklisted_os
        Pairs of ``add`` or ``remove`` and the name of an OS.

    Raises
    ------
    BadInput
        If a hypervisor has no such parameter, or a word is neither of the two.
    """
    found: dict[str, Any] = {}
    if os_hvp:
        found["os_hvp"] = _hypervisors(cluster.os_hvp, os_hvp)
    if osparams:
        found["osparams"] = _each(cluster.osparams, osparams)
    if osparams_private_cluster:
        old = cluster.osparams_private_cluster
        found["osparams_private_cluster"] = _each(old, osparams_private_cluster)
    for name, pairs in (("hidden_os", hidden_os), ("blacklisted_os", blacklisted_os)):
        if pairs:
            found[name] = _listed(getattr(cluster, name), pairs)
    return found


def _each(old: Parameters, new: Parameters) -> dict[str, dict[str, Any]]:
    """Return parameters by OS; one that has none left is not kept."""
    names = sorted({*old, *new})
    made = {one: merged(old.get(one, {}), new.get(one, {})) for one in names}
    return {name: given for name, given in made.items() if given}


def _hypervisors(
    old: Mapping[str, Parameters], new: Mapping[str, Parameters]
) -> dict[str, dict[str, dict[str, Any]]]:
    for given in new.values():
        for hypervisor, parameters in given.items():
            defaults.check_hypervisor(hypervisor)
            defaults.check_hvparams(hypervisor, dict(parameters))
    names = sorted({*old, *new})
    made = {one: _each(old.get(one, {}), new.get(one, {})) for one in names}
    return {name: given for name, given in made.items() if given}


def _listed(old: tuple[str, ...], pairs: Pairs) -> tuple[str, ...]:
    names = list(old)
    for verb, name in pairs:
        if verb not in ("add", "remove"):
            raise BadInput(f"an OS is listed by 'add' or 'remove', not '{verb}'")
        names = [one for one in names if one != name]
        names += [name] if verb == "add" else []
    return tuple(names)


# -- what the nodes know ---------------------------------------------------------------


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
        parameters = {key for one in known for key in one.parameters}
        unknown = sorted(set(keys) - parameters)
        if unknown:
            raise BadInput(
                f"OS '{name}' has no parameter '{unknown[0]}': there is "
                f"{', '.join(sorted(parameters)) or 'none'}",
                hint=f"gnt-os info {name}",
            )


def _there(view: View, nodes: Iterable[Node]) -> list[Os]:
    told = (view.told(oses_on(node.uuid)) or () for node in nodes)
    return [one for here in told for one in here if one.valid]
