# SPDX-License-Identifier: BSD-2-Clause
"""gnt-filter: Ganeti's rules on jobs, which there are not; who types it learns why."""

from functools import partial

from moorage.api.no_filters import WHY

from .declaration import Program
from .main import run

PROGRAM = Program(
    "gnt-filter",
    "filter jobs, in Ganeti; here each command says what to type instead",
    absent=dict.fromkeys(
        ("add", "delete", "info", "list", "list-fields", "replace"), WHY
    ),
)

main = partial(run, PROGRAM)
