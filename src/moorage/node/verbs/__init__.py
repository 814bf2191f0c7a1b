# SPDX-License-Identifier: BSD-2-Clause
"""What does the verbs of the protocol on this node: each module has a table of them."""

from moorage.protocol import name_of

from .backup import VERBS as BACKUP_VERBS
from .certify import VERBS as CERTIFY_VERBS
from .context import NodeContext
from .copying import VERBS as COPYING_VERBS
from .delay import VERBS as DELAY_VERBS
from .disk import VERBS as DISK_VERBS
from .fact import VERBS as FACT_VERBS
from .guest import VERBS as GUEST_VERBS
from .hooks import VERBS as HOOK_VERBS
from .keys import VERBS as KEY_VERBS
from .lines import VERBS as LINE_VERBS
from .maintenance import VERBS as MAINTENANCE_VERBS
from .membership import VERBS as MEMBERSHIP_VERBS
from .mirror import VERBS as MIRROR_VERBS
from .state import VERBS as STATE_VERBS
from .storage import VERBS as STORAGE_VERBS

VERBS = {
    name_of(kind): (kind, function)
    for kind, function in (
        *DISK_VERBS,
        *COPYING_VERBS,
        *BACKUP_VERBS,
        *GUEST_VERBS,
        *LINE_VERBS,
        *FACT_VERBS,
        *MIRROR_VERBS,
        *MEMBERSHIP_VERBS,
        *MAINTENANCE_VERBS,
        *KEY_VERBS,
        *HOOK_VERBS,
        *DELAY_VERBS,
        *STORAGE_VERBS,
        *CERTIFY_VERBS,
        *STATE_VERBS,
    )
}
"""Every verb by its name: the shape of its arguments, and what does it."""

__all__ = ["VERBS", "NodeContext"]
