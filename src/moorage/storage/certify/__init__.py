# SPDX-License-Identifier: BSD-2-Clause
"""A provider is held to its contract: checks that any node can run."""

from .bench import FAILS, MOOT, PASSES, Bench, CheckResult, Doing, Order, Seen, Step
from .checks import CHECKS, FIRST, RUNS, SECOND, Check, named
from .report import Report, Scripts, as_text
from .tidying import let_go, removed
