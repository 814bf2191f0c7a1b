# SPDX-License-Identifier: BSD-2-Clause
"""What a job needs to know and nobody else: never shown, and forgotten at its end."""

from typing import Any

from msgspec.structs import replace

from moorage.protocol import Call, EnrolNode, InstallSystem, PutFile, VerifySystem

from .job import FINISHED, Job, Op
from .task import Run, Task

_TOKEN, _KEY = "token", "key"
"""Names of values: a node's invitation as it is asked for, a migration's key."""
_FIELDS = (
    *("osparams_private", "osparams_secret", "osparams_private_cluster"),
    "file_content",
)
"""Fields that nobody is to see: parameters of OS definitions, files for nodes."""
HIDDEN = "(not shown)"


def shown(values: dict[str, Any], secret: str = _TOKEN) -> dict[str, Any]:
    """Return values without the secret among them.

    >>> shown({"node_name": "node2", "token": "abc"})
    {'node_name': 'node2', 'token': '(not shown)'}
    >>> shown({"instances": [{"osparams_secret": {"password": "abc"}}]})
    {'instances': [{'osparams_secret': '(not shown)'}]}
    """
    hidden: dict[str, Any] = {secret: HIDDEN} if values.get(secret) else {}
    for name, value in values.items():
        if name in _FIELDS and value:
            hidden[name] = HIDDEN
        elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
            hidden[name] = [_part(one) for one in value]
    return values | hidden


def _part(value: Any) -> Any:  # noqa: ANN401
    """Return one of several wishes in an operation without the secrets among it."""
    return shown(value) if isinstance(value, dict) else value


def forget(job: Job) -> None:
    """Forget the secrets of the operations that have ended."""
    for op in job.ops:
        if op.status in FINISHED:
            _forget(op)


def _forget(op: Op) -> None:
    op.input = shown(op.input)
    kept = [_without(task) for task in op.tasks]
    if any(one is not task for one, task in zip(kept, op.tasks, strict=True)):
        op.tasks = kept
    op.results = [
        shown(one, _KEY) if isinstance(one, dict) else one for one in op.results
    ]


def _without(task: Task) -> Task:
    if isinstance(task, Run) and isinstance(task.do, EnrolNode):
        return _doing(task, EnrolNode(token=HIDDEN))
    if isinstance(task, Run) and isinstance(task.do, InstallSystem | VerifySystem):
        return _doing(task, replace(task.do, osparams={}))
    if isinstance(task, Run) and isinstance(task.do, PutFile):
        return _doing(task, replace(task.do, content=b""))
    return task


def _doing(task: Run, do: Call) -> Run:
    """Return a task that does something else; the same one if it does that already."""
    return task if task.do == do else replace(task, do=do)
