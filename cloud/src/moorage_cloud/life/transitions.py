# SPDX-License-Identifier: BSD-2-Clause
"""The table of a volume's transitions: events in, a new state and instructions out.

Nothing here knows a clock, a database or a cluster. What comes late (of an older
generation, or of a step that is over) changes nothing.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from .state import (
    LETS_GO,
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
    User,
)
from .status import Act, Status, Verb


class Row(Struct, frozen=True):
    """What a verb may start from, and where it leads.

    Attributes
    ----------
    start
        From which states.
    during
        The status while it is under way.
    done
        The status when it is done; None for the one before.
    failed
        The status when it failed; None for the one before.
    """

    start: frozenset[Status]
    during: Status
    done: Status | None
    failed: Status | None = None


TABLE: Mapping[Verb, Row] = {
    Verb.ATTACH: Row(
        frozenset({Status.AVAILABLE, Status.CREATING}),
        Status.ATTACHING,
        Status.IN_USE,
        Status.AVAILABLE,
    ),
    Verb.DETACH: Row(
        frozenset({Status.IN_USE, Status.ERROR, Status.ERROR_DELETING}),
        Status.DETACHING,
        Status.AVAILABLE,
    ),
    Verb.EXTEND: Row(
        frozenset({Status.AVAILABLE, Status.IN_USE}),
        Status.EXTENDING,
        None,
    ),
    Verb.DELETE: Row(
        frozenset(
            {
                *(Status.AVAILABLE, Status.IN_USE),
                *(Status.ERROR, Status.ERROR_DELETING),
            }
        ),
        Status.DELETING,
        Status.DELETED,
        Status.ERROR_DELETING,
    ),
    Verb.CHECK: Row(
        frozenset({Status.ERROR, Status.ERROR_DELETING}),
        Status.MAINTENANCE,
        Status.AVAILABLE,
    ),
    Verb.COPY: Row(
        frozenset({Status.CREATING}),
        Status.CREATING,
        Status.AVAILABLE,
        Status.ERROR,
    ),
}

Told = tuple[Instruction, ...]


def decide(life: Life, event: Event) -> tuple[Life, Told]:
    """Return what becomes of a volume, and what is to be done for it.

    Raises
    ------
    NotNow
        If somebody wants what its state does not allow; nothing changes then.
    """
    match event:
        case Done() | Failed():
            return _heard(life, event)
        case CutOff():
            return _cut_off(life, event)
        case Found() | Measured():
            return _compared(life, event)
        case Perished():
            return _perished(life)
        case Check() | NoData():
            return _unsure(life, event)
        case _:
            return _started(life, event)


def _started(life: Life, event: User) -> tuple[Life, Told]:
    match event:
        case Attach(server):
            return _attach(life, server)
        case Detach():
            if life.server is None:
                raise NotNow("it is not attached to any server")
            return _begun(life, Verb.DETACH, (Act.LEAVE,), life.server)
        case Extend(size, by):
            return _extend(life, size, by)
        case Delete(by):
            return _delete(life, by)
        case Copy(by):
            return _begun(life, Verb.COPY, _copying(event), by)
        case _:
            raise AssertionError(event)


def _attach(life: Life, server: int) -> tuple[Life, Told]:
    if life.server is not None:
        raise NotNow("it is attached to a server already")
    # The status before is that of a volume without a server: for one that is made
    # and attached at once, too.
    begun, told = _begun(replace(life, server=server), Verb.ATTACH, (Act.TAKE,), server)
    if life.status is Status.CREATING:  # until the server that it is made for has it
        begun = replace(begun, status=Status.CREATING)
    return begun, told


def _extend(life: Life, size: int, by: int | None) -> tuple[Life, Told]:
    _check(life, Verb.EXTEND)
    more = Charge(size - life.size)
    if more.size <= 0:
        raise NotNow(f"it has {life.size} GiB: it can only become larger")
    if not life.stored:
        return replace(life, size=size), (more,)
    acts: tuple[Act, ...] = (Act.GROW,)
    if life.server is None:
        acts = (Act.TAKE, Act.GROW, Act.LEAVE)
    host = by if life.server is None else life.server
    begun, told = _begun(life, Verb.EXTEND, acts, host, size)
    return begun, (more, *told)


def _copying(event: Copy) -> tuple[Act, ...]:
    """Return what makes a copy; the original is let go of when all is done."""
    copied = (Act.COPY, *([Act.GROW] if event.grows else []), Act.LEAVE)
    return (Act.BORROW, *copied, Act.RETURN) if event.borrows else copied


def _delete(life: Life, by: int | None) -> tuple[Life, Told]:
    _check(life, Verb.DELETE)
    if not life.stored:
        gone = replace(life, status=Status.DELETED, generation=life.generation + 1)
        return gone, (Charge(-life.size),)
    if life.server is None:
        return _begun(life, Verb.DELETE, (Act.TAKE, Act.DESTROY), by)
    return _begun(life, Verb.DELETE, (Act.DESTROY,), life.server)


def _unsure(life: Life, event: Check | NoData) -> tuple[Life, Told]:
    """Look whether there is data, or let the next attach make it."""
    _check(life, Verb.CHECK)
    if life.server is not None:
        raise NotNow("it is attached to a server")
    if isinstance(event, Check):
        return _begun(life, Verb.CHECK, (Act.TAKE, Act.LEAVE), event.by)
    none = replace(
        life,
        status=Status.AVAILABLE,
        initialized=False,
        generation=life.generation + 1,
    )
    return none, ()


def _check(life: Life, verb: Verb) -> None:
    row = TABLE[verb]
    if life.task or life.status not in row.start:
        wanted = " or ".join(f"'{one}'" for one in sorted(row.start))
        raise NotNow(f"its status must be {wanted}, and is '{life.status}'")


def _begun(
    life: Life,
    verb: Verb,
    acts: tuple[Act, ...],
    server: int | None,
    size: int | None = None,
) -> tuple[Life, Told]:
    _check(life, verb)
    task = Task(
        verb=verb,
        acts=acts,
        before=life.status,
        server=server,
        size=life.size if size is None else size,
    )
    begun = replace(
        life,
        status=TABLE[verb].during,
        generation=life.generation + 1,
        task=task,
    )
    return begun, (Ask(),)


# --- what clusters say ----------------------------------------------------------------


def _heard(life: Life, event: Done | Failed) -> tuple[Life, Told]:
    """Go on with the step that has ended; of any other, it is too late to hear."""
    task = life.task
    now = (life.generation, task.step, task.back) if task else None
    if task is None or (event.generation, event.step, event.back) != now:
        return life, ()
    if isinstance(event, Done):
        return _went_on(life, task, None)
    if event.off and task.verb in {Verb.DETACH, Verb.DELETE}:
        life = replace(life, server=None)
    return _went_on(life, task, event.why)


def _went_on(life: Life, task: Task, why: str | None) -> tuple[Life, Told]:
    """Go on after a step; `why` says what failed, None that it is done."""
    if why is not None:
        task = replace(task, why=task.why or why)
        if task.back or task.act not in LETS_GO.values():
            return _back(life, task)
        # It stays in a cluster's configuration, with its data. Nothing is lost; the
        # comparison with the clusters finds it and lets it go.
    elif task.back:
        return _back(life, task)
    made = task.act is Act.COPY or (task.act is Act.TAKE and task.verb is Verb.ATTACH)
    life = replace(life, initialized=life.initialized or made)
    if task.step + 1 < len(task.acts):
        return replace(life, task=replace(task, step=task.step + 1)), (Ask(),)
    return _failed(life, task) if task.why else _done(life, task)


def _back(life: Life, task: Task) -> tuple[Life, Told]:
    """Let go of what was taken on for the step that failed, the last one first."""
    for step in reversed(range(task.step)):
        if task.acts[step] in LETS_GO:
            back = replace(task, step=step, back=True)
            return replace(life, task=back), (Ask(),)
    return _failed(life, task)


def _done(life: Life, task: Task) -> tuple[Life, Told]:
    row = TABLE[task.verb]
    rests = replace(life, status=row.done or task.before, task=None)
    over = End(Result.DONE)
    match task.verb:
        case Verb.DETACH:
            return replace(rests, server=None), (over,)
        case Verb.EXTEND:
            return replace(rests, size=task.size), (over,)
        case Verb.DELETE:
            return replace(rests, server=None), (Charge(-life.size), over)
        case Verb.ATTACH | Verb.CHECK | Verb.COPY:
            return rests, (over,)


def _failed(life: Life, task: Task) -> tuple[Life, Told]:
    row = TABLE[task.verb]
    rests = replace(life, status=row.failed or task.before, task=None)
    over = End(Result.FAILED, task.why)
    match task.verb:
        case Verb.ATTACH:
            return replace(rests, server=None), (over,)
        case Verb.EXTEND:
            grown = task.act is Act.LEAVE and not task.back
            if grown:  # the data is larger already, and is counted so
                return replace(rests, size=task.size), (over,)
            return rests, (Charge(life.size - task.size), over)
        case Verb.COPY if _is_whole(task):
            return replace(rests, status=Status.AVAILABLE), (over,)
        case Verb.DETACH if life.server is None:
            return replace(rests, status=Status.AVAILABLE), (over,)
        case Verb.DETACH | Verb.DELETE | Verb.CHECK | Verb.COPY:
            return rests, (over,)


def _is_whole(task: Task) -> bool:
    """Whether a copy lacks nothing but that the cluster lets go of it."""
    return not task.back and task.act in LETS_GO.values()


def _cut_off(life: Life, event: CutOff) -> tuple[Life, Told]:
    """Take a volume from a cluster that is off; its data is where it was.

    A first attach that was under way may have made the data or not, and a deletion
    destroyed it: then only a person can tell, and the volume says so by its status. A
    copy that was not whole is one no more.
    """
    task = life.task
    if life.server is None and task is None:
        raise NotNow("it is not attached to any server")
    unsure = bool(task and task.verb is Verb.ATTACH and not life.initialized)
    unsure |= bool(task and task.verb in {Verb.DELETE, Verb.CHECK})
    made = True
    if task and task.verb is Verb.COPY:
        unsure = not _is_whole(task)
        # It may be there: then, who deletes it has it removed.
        made = life.initialized or task.act is Act.COPY
    # One that was being extended may have grown: it is counted so, and no byte is lost.
    size = task.size if task else life.size
    freed = replace(
        life,
        status=Status.ERROR if unsure else Status.AVAILABLE,
        size=size,
        server=None,
        initialized=made,
        generation=life.generation + 1,
        task=None,
    )
    over: Told = (End(Result.FAILED, event.why),) if task else ()
    return freed, over


def _perished(life: Life) -> tuple[Life, Told]:
    """Give back what it was counted with; a verb under way has nothing left to do."""
    task = life.task
    gone = replace(
        life,
        status=Status.DELETED,
        server=None,
        generation=life.generation + 1,
        task=None,
    )
    size = task.size if task else life.size
    over: Told = (End(Result.FAILED, "it went with its server"),) if task else ()
    return gone, (Charge(-size), *over)


def _compared(life: Life, event: Found | Measured) -> tuple[Life, Told]:
    """Say what is so of a volume that rests, whatever its record said."""
    match event:
        case _ if life.task:
            return life, ()
        case Found(server):
            return _found(life, server), ()
        case Measured(size):
            return replace(life, size=size), (Charge(size - life.size),)


def _found(life: Life, server: int | None) -> Life:
    if server is not None:
        return replace(life, status=Status.IN_USE, server=server, initialized=True)
    if life.status in {Status.ERROR, Status.ERROR_DELETING, Status.DELETING}:
        failed = Status.ERROR if life.status is Status.ERROR else Status.ERROR_DELETING
        return replace(life, status=failed, server=None)
    return replace(life, status=Status.AVAILABLE, server=None)
