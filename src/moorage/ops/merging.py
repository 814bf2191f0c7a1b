# SPDX-License-Identifier: BSD-2-Clause
"""Parameters with changes: of objects, and of disks by their template."""

from collections.abc import Mapping
from typing import Any

from moorage.errors import BadInput
from moorage.storage.templates import template_named


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with changes; ``default`` and null take one away."""
    kept = {**old, **new}
    return {k: v for k, v in kept.items() if v not in (None, "default")}


def check_diskparams(name: str, own: Mapping[str, Any]) -> None:
    """Raise `BadInput` for parameters that no disk of a template could have."""
    try:
        template_named(name).defaults(own)
    except BadInput as error:
        raise BadInput(
            f"defaults of template '{name}': {error.message}", hint=error.hint
        ) from None


def with_diskparams(
    old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return parameters of disks by template, with changes, or raise `BadInput`."""
    names = sorted(old.keys() | new.keys())
    found = {name: merged(old.get(name, {}), new.get(name, {})) for name in names}
    for name in new:
        check_diskparams(name, found[name])
    return found
