# SPDX-License-Identifier: BSD-2-Clause
"""What an operation would do, without doing it."""

from collections.abc import Callable, Sequence
from typing import Any

from moorage.model import Config

from .operation import Operation, View
from .task import Task

Parse = Callable[[dict[str, Any]], Operation]
"""From an opcode to the operation that answers it; raises `BadInput`."""


def planned(
    operation: Operation, view: View, tasks: Sequence[Task], parse: Parse
) -> list[dict[str, Any]]:
    """Return what would be done: the tasks, then the jobs that would follow."""
    follow = [_asked(one, parse) for job in operation.jobs(view) for one in job]
    return [_shown(task, view.config) for task in tasks] + follow


def _asked(opcode: dict[str, Any], parse: Parse) -> dict[str, Any]:
    node = opcode.get("target_node") or "master"
    what = f"submit a job: {parse(opcode).summary()}"
    return {"what": what, "node": node, "final": False}


def _shown(task: Task, config: Config) -> dict[str, Any]:
    node = getattr(task, "node", None)
    name = config.node(node).name if node else "master"
    return {"what": task.what, "node": name, "final": task.final}
