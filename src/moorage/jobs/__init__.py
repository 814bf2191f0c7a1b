# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: locks, journalled tasks with do and undo, and the engine that runs them."""

from .asking import Nodes
from .engine import COMMON, Engine
from .operation import Ask, Lock, Operation, Question, View
from .record import Job, Op
from .task import Commit, Run, Task, Witness, commit
from .world import World

__all__ = [
    "COMMON",
    "Ask",
    "Commit",
    "Engine",
    "Job",
    "Lock",
    "Nodes",
    "Op",
    "Operation",
    "Question",
    "Run",
    "Task",
    "View",
    "Witness",
    "World",
    "commit",
]
