# SPDX-License-Identifier: BSD-2-Clause
"""The agent's verbs: each module has a table of them, and the shape of arguments."""

from typing import Any

from msgspec import Struct

from .delay import VERBS as DELAY_VERBS
from .delay import DelayArgs
from .disk import VERBS as DISK_VERBS
from .disk import DiskArgs
from .fact import VERBS as FACT_VERBS
from .fact import FactArgs
from .guest import VERBS as GUEST_VERBS
from .guest import GuestArgs
from .keys import VERBS as KEY_VERBS
from .keys import KeyArgs
from .membership import VERBS as MEMBERSHIP_VERBS
from .station import Station

VERBS: dict[str, tuple[type[Struct], Any]] = {
    **{name: (DiskArgs, verb) for name, verb in DISK_VERBS.items()},
    **{name: (GuestArgs, verb) for name, verb in GUEST_VERBS.items()},
    **{name: (FactArgs, verb) for name, verb in FACT_VERBS.items()},
    **{name: (FactArgs, verb) for name, verb in MEMBERSHIP_VERBS.items()},
    **{name: (KeyArgs, verb) for name, verb in KEY_VERBS.items()},
    **{name: (DelayArgs, verb) for name, verb in DELAY_VERBS.items()},
}
"""Every verb: the shape of its arguments, and what runs it."""

__all__ = ["VERBS", "DiskArgs", "FactArgs", "GuestArgs", "Station"]
