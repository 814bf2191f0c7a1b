# SPDX-License-Identifier: BSD-2-Clause
"""What does the verbs of the protocol on this node: each module has a table of them."""

from moorage.protocol import name_of

from . import (
    address,
    allocators,
    backup,
    carrying,
    certify,
    copying,
    delay,
    disk,
    fact,
    guest,
    hooks,
    keys,
    lines,
    maintenance,
    membership,
    mirror,
    orders,
    ssconf,
    state,
    storage,
)
from .context import NodeContext

_TABLES = (
    *(disk.VERBS, copying.VERBS, backup.VERBS, guest.VERBS, lines.VERBS, fact.VERBS),
    *(mirror.VERBS, membership.VERBS, maintenance.VERBS, keys.VERBS, hooks.VERBS),
    *(delay.VERBS, storage.VERBS, certify.VERBS, state.VERBS, carrying.VERBS),
    *(allocators.VERBS, ssconf.VERBS, orders.VERBS, address.VERBS),
)
VERBS = {name_of(kind): (kind, work) for table in _TABLES for kind, work in table}
"""Every verb by its name: the shape of its arguments, and what does it."""
