# SPDX-License-Identifier: BSD-2-Clause
"""gnt-filter: Ganeti's rules on jobs, which there are not; who types it learns why."""

from functools import partial

from .declaration import Program
from .main import run

_WHY = (
    "jobs are not filtered; gnt-cluster queue drain refuses new ones, --priority and "
    "gnt-job change-priority let some come first, --max-running-jobs limits them"
)
PROGRAM = Program(
    "gnt-filter",
    "filter jobs, in Ganeti; here each command says what to type instead",
    absent=dict.fromkeys(
        ("add", "delete", "info", "list", "list-fields", "replace"), _WHY
    ),
)

main = partial(run, PROGRAM)
