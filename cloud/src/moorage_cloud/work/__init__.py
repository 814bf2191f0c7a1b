# SPDX-License-Identifier: BSD-2-Clause
"""What goes on without being asked: requests go out, and what came of them comes in."""

from .alone import place_of_worker
from .comparing import compare
from .doors import Connect, Doors
from .finding import Finding
from .hearing import hear
from .legacy import Plan, carry_out, plans, rename
from .removing import remove_next
from .sending import send_next
from .settling import forget_jobs, look_next, settle
from .worker import Worker
