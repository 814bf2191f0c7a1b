# SPDX-License-Identifier: BSD-2-Clause
"""Hooks: an administrator's scripts, on nodes, before and after an operation.

Those before run when it is decided what is to be done, and nothing is done yet: one
that fails refuses the operation. Those after run when all is done; what fails there is
a line in the job's log. A master that takes a job over runs them again, for nobody
knows how far the former one came: so scripts must bear to run twice.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from moorage.directories import MASTER_DIR
from moorage.errors import HookFailed, MoorageError, NotFound
from moorage.protocol import HookRuns, RunHooks
from moorage.store import ConfigStore

from .asking import Asker
from .job import Job, Op, Pending
from .operation import FailedHook, Operation, View
from .planner import Auditor
from .queue import Queue
from .task import Task
from .turns import together

GLOBAL = "global"
"""The hooks of every operation; they run on the master's node."""
_POST = "POST_"


class Hooked(NamedTuple):
    """What hooks an operation has.

    Attributes
    ----------
    path
        Name of their directories, without the phase; empty if it has none but the
        global ones.
    kind
        What it is about, as Ganeti says it: ``INSTANCE``.
    before, after
        Uuids of the nodes where they run.
    env
        Variables of the operation, without the prefix ``GANETI_``.
    """

    path: str = ""
    kind: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


HooksOf = Callable[[Operation, View, Sequence[Task]], Hooked]
"""Tells the hooks of an operation that is about to do some tasks."""


class Hooks:
    """Runs hooks on behalf of jobs.

    Parameters
    ----------
    of
        Tells which an operation has.
    point
        Passes a place where a test may interrupt.
    """

    def __init__(
        self,
        config_store: ConfigStore,
        queue: Queue,
        asker: Asker,
        of: HooksOf,
        point: Callable[[str], Awaitable[None]],
    ) -> None:
        self._config_store = config_store
        self._queue = queue
        self._asker = asker
        self._of = of
        self._point = point

    async def before(
        self, job: Job, op: Op, operation: Operation, view: View, tasks: Sequence[Task]
    ) -> None:
        """Run what comes before; note in the operation what is to come after.

        Raises
        ------
        HookFailed
            If one of them fails.
        """
        known = self._of(operation, view, tasks)
        env = self._common(operation, known) | dict(known.env)
        plan = self._plan(known.path, known.before)
        found = await self._run(job, op, plan, "pre", env)
        for node, runs in found.items():
            for one in runs.runs:
                if one.problem:
                    name = self._name(node)
                    raise HookFailed(
                        f"hook {one.script} on node {name}: {one.problem}", node=name
                    )
        having = {node for node, runs in found.items() if runs.after}
        unasked = set(known.after) - set(known.before)
        nodes = tuple(n for n in known.after if n in having or n in unasked)
        everywhere = self._master() in having
        if (known.path and nodes) or everywhere:
            op.hooks = Pending(
                path=known.path, nodes=nodes, everywhere=everywhere, env=env
            )

    async def after(self, job: Job, op: Op, operation: Operation, view: View) -> None:
        """Run what comes after an operation that has ended, well or not.

        The operation says what its result is when some of its own have failed.
        """
        if not op.hooks:
            return
        known, done = op.hooks, op.error is None
        env = known.env | {"POST_STATUS": "success" if done else "error"}
        if done:
            env |= self._afresh(operation, view)
        if done and known.path:
            own: dict[str, tuple[str, ...]]
            own = dict.fromkeys(known.nodes, (known.path,))
            failed = await self._say(job, op, own, env)
            if failed and isinstance(operation, Auditor):
                op.result = operation.judged(op.result, failed)
        if known.everywhere:
            await self._say(job, op, {self._master(): (GLOBAL,)}, env)
        op.hooks = None

    async def _say(
        self, job: Job, op: Op, plan: dict[str, tuple[str, ...]], env: dict[str, str]
    ) -> list[FailedHook]:
        """Run hooks that come after; return those that failed, and tell of them."""
        found = (await self._run(job, op, plan, "post", env)).items()
        failed = [
            FailedHook(self._name(node), one.script, one.problem)
            for node, runs in found
            for one in runs.runs
            if one.problem
        ]
        for one in failed:
            told = f"hook {one.script} on node {one.node}: {one.problem}"
            self._queue.note(job, op, f"Warning: {told}")
        return failed

    async def _run(
        self,
        job: Job,
        op: Op,
        plan: dict[str, tuple[str, ...]],
        phase: str,
        env: dict[str, str],
    ) -> dict[str, HookRuns]:
        """Run the hooks of nodes, many at once; a silent one has none."""
        called = f"job {job.id}.{job.ops.index(op)}"
        await self._point(f"before hooks, {phase}")
        calls = {
            node: RunHooks(operation=called, paths=paths, phase=phase, env=env)
            for node, paths in plan.items()
        }
        found = await together(
            self._ask(job, op, node, call) for node, call in calls.items()
        )
        await self._point(f"after hooks, {phase}")
        return dict(zip(plan, found, strict=True))

    async def _ask(self, job: Job, op: Op, node: str, call: RunHooks) -> HookRuns:
        known = self._config_store.config.objects.get(node)
        if known is None or getattr(known, "offline", False):
            return HookRuns()
        try:
            return await self._asker.call(job, op, node, call)
        except MoorageError as error:
            told = f"the hooks of node {self._name(node)} did not run: {error.message}"
            self._queue.note(job, op, f"Warning: {told}")
            return HookRuns()

    def _plan(self, path: str, nodes: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return which hooks run where: the global ones on the master's node."""
        plan = {node: (path,) for node in nodes if path}
        master = self._master()
        return plan | {master: (GLOBAL, *plan.get(master, ()))}

    def _common(self, operation: Operation, known: Hooked) -> dict[str, str]:
        """Return the variables of every hook."""
        cluster = self._config_store.config.cluster
        kind = {"OBJECT_TYPE": known.kind} if known.kind else {}
        return kind | {
            "OP_CODE": operation.op_id,
            "DATA_DIR": MASTER_DIR,
            "CLUSTER": cluster.cluster_name,
            "MASTER": self._name(cluster.master_node),
        }

    def _afresh(self, operation: Operation, view: View) -> dict[str, str]:
        """Return the variables as they are by now; none of what is gone."""
        try:
            env = self._of(operation, view, ()).env
        except NotFound:
            return {}
        return {_POST + name: value for name, value in env.items()}

    def _master(self) -> str:
        return self._config_store.config.cluster.master_node

    def _name(self, node: str) -> str:
        return (
            getattr(self._config_store.config.objects.get(node), "name", None) or node
        )
