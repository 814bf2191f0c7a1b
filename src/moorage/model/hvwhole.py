# SPDX-License-Identifier: BSD-2-Clause
"""Hypervisor parameters as clients read them: all of Ganeti's, filled and typed."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import to_builtins

from moorage.errors import BadInput
from moorage.hypervisors import KVM

from . import hvparams
from .hvignored import IGNORED


def whole(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a hypervisor, with the types that they are of."""
    own = {key: value for key, value in given.items() if value is not None}
    found = _all(name) | own
    if name != KVM or not own:
        return found
    try:
        typed = to_builtins(hvparams.parameters(own))
    except BadInput:  # an earlier version took it: shown as it is
        typed = {}
    typed |= {key: one.typed(own[key]) for key, one in IGNORED.items() if key in own}
    return found | {key: typed[key] for key in own.keys() & typed.keys()}


@cache
def _all(name: str) -> dict[str, Any]:
    """Return the parameters of a hypervisor that nobody has set anything of."""
    usual = {key: one.default for key, one in IGNORED.items()} if name == KVM else {}
    return {**usual, **hvparams.filled(name, {})}
