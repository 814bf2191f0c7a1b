# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: locks, journalled tasks with do and undo, and the engine that runs them."""

from .asking import Nodes
from .effects import Effects
from .engine import COMMON, Engine
from .hooks import Hooked
from .job import Job, Op
from .locks import Lock
from .operation import (
    Ask,
    Case,
    FailedHook,
    Kept,
    Operation,
    Question,
    Sight,
    Sought,
    View,
    once,
)
from .planner import Auditor, Planner, Surveyor
from .task import Commit, Run, Task, Witness

__all__ = [
    "COMMON",
    "Ask",
    "Auditor",
    "Case",
    "Commit",
    "Effects",
    "Engine",
    "FailedHook",
    "Hooked",
    "Job",
    "Kept",
    "Lock",
    "Nodes",
    "Op",
    "Operation",
    "Planner",
    "Question",
    "Run",
    "Sight",
    "Sought",
    "Surveyor",
    "Task",
    "View",
    "Witness",
    "once",
]
