# SPDX-License-Identifier: BSD-2-Clause
"""A volume's life: pure, and the whole of what may become of it."""

from .state import (
    Ask,
    Attach,
    Charge,
    Check,
    Copy,
    CutOff,
    Delete,
    Detach,
    Done,
    End,
    Event,
    Extend,
    Failed,
    Found,
    Instruction,
    Life,
    Measured,
    NoData,
    NotNow,
    Perished,
    Result,
    Task,
)
from .status import Act, Status, Verb
from .transitions import TABLE, decide
