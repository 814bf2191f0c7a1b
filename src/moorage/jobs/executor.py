# SPDX-License-Identifier: BSD-2-Clause
"""Carries one operation through its tasks, or back.

The rules, in the order in which they matter:

* The journal knows a task before it takes effect, and a commit moves the journal in
  the same transaction. So what may have happened is always ``tasks[:cursor + 1]``.
* A failure before the point of no return (the first `final` task) undoes what may have
  happened, last first. After it, the operation only goes forward.
* After a crash the same two rules apply: undo, or carry on.
* A node that gives no answer is waited for, with the reason in the job's log, until it
  answers or somebody says that it is off.
* A disk whose undo failed is quarantined: it stays visible, and nobody can use it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import convert, to_builtins

from moorage.errors import Failed, MoorageError, Refused, Unreachable, sentence
from moorage.model import Change, Config, Disk, Instance, successor
from moorage.model import change as changes
from moorage.model.story import Occasion
from moorage.protocol import Call, UnmakeDisk, one_disk
from moorage.storage.ownership import could_be_others, ways_out
from moorage.store import ConfigStore

from .asking import ATTEMPTS, PAUSE, Asker, given_up
from .effects import Effects
from .job import FAILED, LEFT_OUT, RUNNING, Job, Op, Suspect, stamp, user_words
from .queue import Queue
from .staying import doubtful, failing, left, stopped
from .task import Commit, Run, Task, today


class Parked(BaseException):
    """The master stops as planned, and the job stands between two tasks."""


class Executor:
    """Carries operations; holds no state of its own.

    Parameters
    ----------
    parking
        Tells whether jobs are to stop at the next task.
    """

    def __init__(
        self,
        config_store: ConfigStore,
        queue: Queue,
        asker: Asker,
        effects: Effects,
        parking: Callable[[], bool],
    ) -> None:
        self._config_store = config_store
        self._queue = queue
        self._asker = asker
        self._world = effects
        self._clock = effects.clock
        self._parking = parking

    def begin(self, op: Op, tasks: list[Task]) -> None:
        """Give an operation its tasks; nobody else changes what it holds from now."""
        op.tasks, op.status = tasks, RUNNING
        op.exec_timestamp = stamp(self._clock())
        names = [lock.name for lock in op.locks if not lock.shared]
        held = (self._config_store.config.objects.get(name) for name in names)
        kept = (one for one in held if isinstance(one, Instance | Disk))
        op.versions = {one.uuid: one.serial_no for one in kept}

    async def carry(self, job: Job, op: Op) -> bool:
        """Do the tasks from the cursor on, or undo them; return whether all is done."""
        try:
            if op.suspects and not op.undoing:  # of a master that died just then
                await self._quarantine(job, op)
            if not op.undoing:
                await self._forward(job, op)
            if op.undoing:
                await self._back(job, op)
        except Exception:
            if op.suspects:  # they stay what they are, however this ends
                await self._quarantine(job, op)
            raise
        return op.error is None

    async def recover(self, job: Job, op: Op) -> bool:
        """Finish what another process began; return whether all is done.

        Raises
        ------
        Failed
            If what the operation works on was changed by others since: whatever it
            did then, neither way is safe.
        """
        try:
            self._check_untouched(op, op.versions)
        except Failed:
            if op.suspects:
                await self._quarantine(job, op)
            raise
        interrupted = op.cursor < len(op.tasks) and not op.undoing and not op.parked
        op.parked = False
        if interrupted and not op.committed_to():
            await self._turn_back(job, op, stopped(job, op), doubt=True)
        return await self.carry(job, op)

    async def _forward(self, job: Job, op: Op) -> None:
        await self._queue.save(job)
        begun = True  # by a master that died, maybe
        while op.cursor < len(op.tasks):
            if given_up(job, op) or (not begun and _still_canceled(job, op)):
                await self._turn_back(job, op, Failed("the job was canceled"))
                return
            if self._parking():
                op.parked = True
                await self._queue.save(job)
                raise Parked
            task = op.tasks[op.cursor]
            await self._world.point(f"before {task.what}")
            try:
                await self._do(job, op, task)
            except Exception as error:  # noqa: BLE001
                if not await self._survived(job, op, task, sentence(error)):
                    return
            await self._world.point(f"after {task.what}")
            begun = False

    async def _do(self, job: Job, op: Op, task: Task) -> None:
        self._queue.progress(job, op.cursor, len(op.tasks), "tasks", task.what)
        if isinstance(task, Commit):
            change = changes.from_json(task.change)
            await self._commit(job, op, change, op.cursor + 1, task.what)
        else:
            result = to_builtins(await self._run(job, op, task))
            await self._world.point(f"during {task.what}")
            await self._advance(job, op, result)

    async def _run(self, job: Job, op: Op, task: Run) -> object:
        call = _filled(task, op)
        if task.tolerant and not task.patient:
            return await self._asker.try_(job, op, task.node, call)
        if not (task.final or task.patient):
            return await self._asker.call(job, op, task.node, call)
        try:
            return await self._asker.insist(job, op, task.node, call)
        except Failed:
            if task.witness is None:
                raise
            return await self._asker.insist(
                job, op, task.witness.node, task.witness.ask
            )

    async def _survived(
        self, job: Job, op: Op, task: Task, error: MoorageError
    ) -> bool:
        """Do what a failed task asks for; return whether the next one is to be done."""
        run = task if isinstance(task, Run) else None
        if run and run.hint and not error.hint:
            error.with_hint(run.hint)
        if given_up(job, op):
            cause = Failed("the job was canceled")
            await self._turn_back(job, op, cause, doubt=doubtful(error))
            return False
        if run and run.tolerant:
            self._queue.note(job, op, f"Warning: {task.what}: {error.message}")
        committed = any(earlier.final for earlier in op.tasks[: op.cursor])
        if run and run.spoils and (committed or not isinstance(error, Refused)):
            await self._spoilt(job, op, run, error)
            return True
        if run and run.tolerant:
            op.passed[op.cursor] = failing(run, error)
            await self._advance(job, op, None)
            return True
        if not committed:
            await self._turn_back(job, op, error, doubt=doubtful(error))
        else:  # there is neither a way forward nor one back
            left(op, error, doubt=doubtful(error))
            error.facts["done_before"] = True
            op.error = error.to_json()
            await self._queue.save(job)
        return False

    async def _spoilt(self, job: Job, op: Op, task: Run, error: MoorageError) -> None:
        """Quarantine the disk, and go on behind the commit that would forget it.

        A tolerant task is a warning, whatever became of its disk.
        """
        if not task.tolerant:
            op.error = op.error or error.to_json()
        behind = _behind_commit(op)
        op.passed |= dict.fromkeys(range(op.cursor + 1, behind), LEFT_OUT)
        op.passed[op.cursor] = FAILED
        op.results += [None] * (behind - op.cursor)
        op.cursor = behind
        disk = one_disk(task.do)
        why = f"{task.what}: {error.message}"
        op.suspects = _suspects(disk, why)
        await self._quarantine(job, op)

    async def _turn_back(
        self, job: Job, op: Op, error: MoorageError, *, doubt: bool = False
    ) -> None:
        left(op, error, doubt=doubt)
        op.error = error.to_json()
        op.undoing = True
        unsent = isinstance(error, Unreachable) and error.facts.get("sent") is False
        if unsent or isinstance(op.tasks[op.cursor], Commit):
            op.cursor -= 1
        await self._queue.save(job)

    async def _back(self, job: Job, op: Op) -> None:
        while op.cursor >= 0:
            task = op.tasks[op.cursor]
            await self._world.point(f"before undoing {task.what}")
            if isinstance(task, Commit):
                back, what = self._taken_back(op, task), f"undo '{task.what}'"
                await self._commit(job, op, back, op.cursor - 1, what)
                continue
            op.suspects = [*op.suspects, *await self._undo(job, op, task)]
            op.cursor -= 1
            await self._queue.save(job)
            await self._world.point(f"after undoing {task.what}")
        if op.suspects:
            await self._quarantine(job, op)

    async def _undo(self, job: Job, op: Op, task: Run) -> list[Suspect]:
        """Take a task back; return the disk that it could not be proven safe for."""
        if task.undo is None or self._is_gone(task):
            return []
        for attempt in range(1, ATTEMPTS + 1):
            try:
                undo = today(task.undo, self._config_store.config)
                await self._asker.insist(job, op, task.node, undo)
            except MoorageError as error:
                if self._is_gone(task):
                    return []
                cause = f"undoing '{task.what}': {error.message}"
                self._queue.note(job, op, f"Warning: {cause}")
                if attempt < ATTEMPTS and not isinstance(error, Unreachable):
                    await self._world.sleep(PAUSE)
                    continue
                disk = one_disk(task.undo)
                unproven = _unproven(task.undo, error)
                return _suspects(disk, cause, unproven=unproven)
            else:
                return []
        return []

    def _is_gone(self, task: Run) -> bool:
        """Whether what a task did went with the power of its node."""
        return not task.lasting and self._config_store.config.node(task.node).offline

    async def _quarantine(self, job: Job, op: Op) -> None:
        """Keep the suspects visible, and unusable until somebody has looked."""
        put: dict[str, Disk] = {}
        for one in op.suspects:
            disk = one.disk
            known = self._config_store.config.objects.get(disk.uuid)
            last = known if isinstance(known, Disk) else disk
            why = f"job {job.id}: {' '.join(one.cause.split())}"  # scripts print lines
            doubt = last.unproven or one.unproven
            if doubt:
                why = f"{why}; {ways_out(disk)}"
            put[disk.uuid] = successor(
                last, self._clock(), quarantine=why, unproven=doubt
            )
            self._queue.note(job, op, f"disk {disk.label} is quarantined: {one.cause}")
        change = Change(tuple(put.values()))
        await self._commit(job, op, change, op.cursor, "quarantine", left=[])

    async def _advance(self, job: Job, op: Op, result: Any) -> None:  # noqa: ANN401
        op.results.append(result)
        op.cursor += 1
        await self._queue.save(job)

    async def _commit(
        self,
        job: Job,
        op: Op,
        change: Change,
        cursor: int,
        what: str,
        left: list[Suspect] | None = None,
    ) -> None:
        """Commit a change and move the cursor, in one transaction.

        With it go the suspects, but for those that are left; all stay if none is named.
        """
        occasion = Occasion(
            time=self._clock(),
            what=what,
            job=job.id,
            op=op.summary,
            words=user_words(op.input),
            by=str(job.caller),
        )
        async with self._queue.turn(job):
            before = op.cursor, op.results, op.versions, op.suspects
            if cursor > op.cursor:
                op.results = [*op.results, [entity.uuid for entity in change.put]]
            op.cursor, op.versions = cursor, _versions(op.versions, change)
            op.suspects = op.suspects if left is None else left
            try:
                await self._queue.write(job, change, occasion)
            except MoorageError:
                op.cursor, op.results, op.versions, op.suspects = before
                raise

    def _taken_back(self, op: Op, task: Commit) -> Change:
        """Return the inverse of a commit, on top of what later tasks committed."""
        back, config = changes.from_json(task.back), self._config_store.config
        touched = (*back.put, *back.drop)
        own = {
            one.uuid: op.versions[one.uuid]
            for one in touched
            if one.uuid in op.versions
        }
        self._check_untouched(op, own)
        return back.onto(config.before(back))

    def _check_untouched(self, op: Op, versions: Mapping[str, int]) -> None:
        """Fail if somebody else changed what is ours to change; it is not undone."""
        config = self._config_store.config
        for uuid, serial in versions.items():
            found = config.objects.get(uuid)
            if found is None or found.serial_no != serial:
                raise Failed(_overtaken(config, op, uuid), hint="gnt-cluster verify")


def _still_canceled(job: Job, op: Op) -> bool:
    """Whether a job was cancelled before the point of no return, which is next."""
    return job.cancel_asked and not any(task.final for task in op.tasks[: op.cursor])


def _suspects(disk: Disk | None, why: str, *, unproven: bool = False) -> list[Suspect]:
    return [Suspect(disk=disk, cause=why, unproven=unproven)] if disk else []


def _unproven(undo: Call, error: MoorageError) -> bool:
    """Whether a volume that could not be taken back may be another cluster's.

    A provider may know it by the disk's name; its node tells when it made it itself.
    """
    if not isinstance(undo, UnmakeDisk) or error.facts.get("made"):
        return False
    return could_be_others(undo.disk)


def _behind_commit(op: Op) -> int:
    """Return the place behind the next commit; what spoils a disk comes before one."""
    rest = range(op.cursor + 1, len(op.tasks))
    return next(at for at in rest if isinstance(op.tasks[at], Commit)) + 1


def _filled(task: Run, op: Op) -> Call:
    """Return what a task asks for, with what it uses of earlier tasks' results."""
    if not task.use:
        return task.do
    done = zip(op.tasks, op.results, strict=False)
    named = {one.name: told for one, told in done if isinstance(one, Run)}
    used = {
        argument: op.results[which] if isinstance(which, int) else named[which]
        for argument, which in task.use.items()
    }
    call: Call = convert(to_builtins(task.do) | used, type(task.do))
    return call


def _versions(known: Mapping[str, int], change: Change) -> dict[str, int]:
    gone = {entity.uuid for entity in change.drop}
    kept = {uuid: serial for uuid, serial in known.items() if uuid not in gone}
    return kept | {entity.uuid: entity.serial_no for entity in change.put}


def _overtaken(config: Config, op: Op, uuid: str) -> str:
    name = getattr(config.objects.get(uuid), "name", None) or uuid
    return (
        f"{name} was changed by others since this operation worked on it: what it "
        f"began is neither carried on nor undone ({op.summary}, step {op.cursor + 1} "
        f"of {len(op.tasks)})"
    )
