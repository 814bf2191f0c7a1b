# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the cluster that have several parts, and what becomes of them."""

from collections.abc import Callable, Mapping
from typing import Any

from moorage import backend
from moorage.model import ipolicy, nicparams
from moorage.ops import ndparams
from moorage.ops.merging import merged, with_diskparams

from . import defaults, systems

Nested = Mapping[str, Mapping[str, Any]]


def _hypervisors(old: Nested, given: Nested) -> dict[str, dict[str, Any]]:
    """Return the parameters of hypervisors with changes."""
    names = sorted(old.keys() | given.keys())
    found = {name: merged(old.get(name, {}), given.get(name, {})) for name in names}
    for name in given:
        defaults.check_hvparams(name, found[name])
    return found


def _templates(old: Nested, given: Nested) -> dict[str, dict[str, Any]]:
    """Return the parameters of disk templates with changes."""
    defaults.check_known_templates(given)
    return with_diskparams(old, given)


def with_backend(old: Nested, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the profiles of back-end parameters with changes.

    Raises
    ------
    BadInput
        If there is no such parameter, or an instance could not have the value.
    """
    flat = given.get("default", given)
    backend.check(flat)
    filled = merged(old.get("default", {}), backend.aliased(flat))
    backend.check(filled)
    return {**{k: dict(v) for k, v in old.items()}, "default": filled}


def card_defaults(old: Nested, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parameters of network cards, plain or under the word ``default``.

    Raises
    ------
    BadInput
        If there is no such parameter, or they do not go together.
    """
    new = {**old.get(nicparams.DEFAULT, {}), **given.get(nicparams.DEFAULT, given)}
    found = nicparams.checked({**nicparams.INITIAL, "link": "", **new})
    nicparams.check_whole(nicparams.NicParams(**found))
    return {nicparams.DEFAULT: found}


MERGED: Mapping[str, Callable[[Any, Any], Any]] = {
    "hvparams": _hypervisors,
    "diskparams": _templates,
    "nicparams": card_defaults,
    "ipolicy": ipolicy.changed,
    "ndparams": lambda old, given: merged(old, ndparams.checked(given)),
    "beparams": with_backend,
    "os_hvp": systems.hypervisors,
    "osparams": systems.parameters,
    "osparams_private_cluster": systems.parameters,
    "hidden_os": systems.listed,
    "blacklisted_os": systems.listed,
}
"""Settings of several parts: what comes of the old ones and those that are given."""
