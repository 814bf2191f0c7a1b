# SPDX-License-Identifier: BSD-2-Clause
"""The one place where a volume's state is written: what its table of transitions says.

State, operation, outbox and quota change by one transaction, or not at all.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import transaction
from django.utils import timezone
from msgspec import Struct

from moorage_cloud.errors import BadRequest
from moorage_cloud.life import (
    Ask,
    Charge,
    CutOff,
    Delete,
    End,
    Event,
    Extend,
    Found,
    Instruction,
    Life,
    Measured,
    NoData,
    NotNow,
    Perished,
    Result,
    Status,
    Verb,
    decide,
)
from moorage_cloud.models import (
    Attachment,
    Backend,
    Operation,
    Outbox,
    Server,
    Snapshot,
    Transfer,
    Volume,
)
from moorage_cloud.requests import to_json

from .asking import Thing, name_of, original, request_of
from .caller import Caller
from .messages import leave_message
from .quota import charge
from .story import What, tell, tell_end

_LOG = logging.getLogger(__name__)


class By(Struct, frozen=True):
    """Whose cluster does it: with a server's instance, or without any."""

    backend: Backend
    server: Server | None = None


@contextmanager
def changing(volume: Volume) -> Iterator[Volume]:
    """Hold a volume until the end of the transaction; yield it as it is now."""
    with transaction.atomic():
        held = Volume.objects.select_for_update(of=("self",)).select_related(
            "volume_type", "backend"
        )
        yield held.get(pk=volume.pk)


@contextmanager
def changing_snapshot(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Hold a snapshot until the end of the transaction; yield it as it is now."""
    with transaction.atomic():
        held = Snapshot.objects.select_for_update(of=("self",)).select_related(
            "volume__volume_type"
        )
        yield held.get(pk=snapshot.pk)


def under_way(thing: Thing) -> Operation | None:
    """Return the operation that is under way."""
    return thing.operations.filter(ended=None, snapshot=_snapshot(thing)).first()


def begin(thing: Thing, event: Event, who: Caller, by: By | None = None) -> None:
    """Let somebody's wish happen, within the transaction that holds the volume.

    Raises
    ------
    BadRequest
        If its state does not allow it.
    OverLimit
        If the project's quota does not.
    """
    known = under_way(thing)
    try:
        life, told = decide(life_of(thing, known), event)
    except NotNow as error:
        what = type(thing).__name__
        raise BadRequest(f"Invalid {what.lower()}: {error} ({thing.uuid})") from None
    operation = known
    if life.task and known is None:
        assert by is not None  # noqa: S101 - who begins a task says whose cluster does it
        operation = _operation(thing, life, who, by)
    _carry_out(thing, operation, life, told)
    if life.task is None:
        _tell(thing, event, who)


def go_on(thing: Thing, operation: Operation, event: Event) -> None:
    """Let something happen to a verb that is under way; late events change nothing."""
    life, told = decide(life_of(thing, operation), event)
    if told:
        _carry_out(thing, operation, life, told)


def set_right(volume: Volume, server: Server | None) -> None:
    """Let a volume that rests be where a comparison with the clusters found it.

    Nothing is done if anything was done with it since it was read.
    """
    with changing(volume) as held:
        if under_way(held) is None and held.generation == volume.generation:
            found = Found(server.pk if server else None)
            life, told = decide(life_of(held, None), found)
            if server:
                held.backend = server.backend
            # An offer is over with the status that says that there is one.
            Transfer.objects.filter(volume=held).delete()
            _carry_out(held, None, life, told)
            why = "a comparison with the clusters found it here"
            if server is None:
                why = "a comparison with the clusters found it on no server"
            backend = server.backend if server else None
            tell(held, What.FOUND, why=why, server=server, backend=backend)


def set_size(volume: Volume, size: int) -> None:
    """Count a volume that rests with the GiB that were found; as `set_right`."""
    with changing(volume) as held:
        if under_way(held) is None and held.generation == volume.generation:
            life, told = decide(life_of(held, None), Measured(size))
            _carry_out(held, None, life, told)
            tell(held, What.FOUND, why="a comparison with the clusters measured it")


def _tell(thing: Thing, event: Event, who: Caller) -> None:
    """Put what was done without asking a cluster into the volume's story."""
    if not isinstance(thing, Volume):
        return
    match event:
        case CutOff(why):
            tell(thing, What.CUT_OFF, who, why=why, backend=thing.backend)
        case Perished():
            tell(thing, What.DELETE, who, why="it went with its server")
        case NoData():
            tell(thing, What.NO_DATA, who)
        case Delete():
            tell(thing, What.DELETE, who)
        case Extend():
            tell(thing, What.EXTEND, who)


def life_of(thing: Thing, operation: Operation | None) -> Life:
    """Return where a volume or a snapshot stands."""
    if isinstance(thing, Volume):
        return thing.life(operation)
    return Life(
        status=Status(thing.status),
        size=thing.size,
        initialized=thing.initialized,
        generation=thing.generation,
        task=operation.task() if operation else None,
    )


def _operation(thing: Thing, life: Life, who: Caller, by: By) -> Operation:
    task = life.task
    assert task is not None  # noqa: S101
    about = original(thing) if task.verb is Verb.COPY else thing
    return Operation(
        volume=thing if isinstance(thing, Volume) else thing.volume,
        snapshot=_snapshot(thing),
        verb=task.verb,
        generation=life.generation,
        acts=list(task.acts),
        before=task.before,
        size=task.size,
        data=name_of(about),
        borrowed=0 if about is thing else about.generation,
        backend=by.backend,
        server=by.server,
        userid=who.user,
        request_id=who.request_id,
        global_request_id=who.global_request_id,
    )


def _carry_out(
    thing: Thing, operation: Operation | None, life: Life, told: Iterable[Instruction]
) -> None:
    if operation and life.task:
        operation.follow(life.task)
    asks = False
    for one in told:
        match one:
            case Ask():
                asks = True
            case Charge(size):
                _charge(thing, size, gone=life.status is Status.DELETED)
            case End():
                _end(thing, operation, one)
    _store(thing, operation, life)
    if operation:
        _send(thing, operation, asks=asks)
        if operation.ended:
            tell_end(thing, operation)


def _end(thing: Thing, operation: Operation | None, end: End) -> None:
    thing.fault = end.why if end.result is Result.FAILED else ""
    if operation:
        operation.result, operation.why = end.result, end.why
        operation.ended = timezone.now()
        with operation.traced():
            told = {"operation": str(operation.uuid), "why": end.why}
            _LOG.info("%s: %s", operation, end.result, extra={"told": told})
        if end.result is Result.FAILED:
            leave_message(thing, operation, end.why)


def _send(thing: Thing, operation: Operation, *, asks: bool) -> None:
    """Store the operation; its message is the one of its step, or none."""
    operation.job = operation.look_at = None
    operation.looks = 0
    operation.save()
    Outbox.objects.filter(operation=operation).delete()
    if asks:
        Outbox.objects.create(
            operation=operation,
            backend=operation.backend,
            key=operation.key,
            request=to_json(request_of(thing, operation)),
            not_before=timezone.now(),
        )


def _charge(thing: Thing, size: int, *, gone: bool) -> None:
    """Charge GiB; with what is gone, the thing itself."""
    less = -1 if gone else 0
    if isinstance(thing, Volume):
        kind = thing.volume_type.name
        charge(thing.project, kind, gigabytes=size, volumes=less)
    else:
        kind = thing.volume.volume_type.name
        charge(thing.project, kind, gigabytes=size, snapshots=less)


def _store(thing: Thing, operation: Operation | None, life: Life) -> None:
    thing.status = life.status
    thing.size = life.size
    thing.initialized = life.initialized
    thing.generation = life.generation
    thing.deleted = life.status is Status.DELETED
    if isinstance(thing, Volume):
        if operation and _had(thing, operation, life):
            thing.backend = operation.backend
        if operation and operation.verb == Verb.COPY:
            thing.uncopied = life.status is not Status.AVAILABLE
        _place(thing, life)
    thing.save()


def _had(volume: Volume, operation: Operation, life: Life) -> bool:
    """Whether an operation's cluster is the one that had a volume last.

    One that could not get it is not: a disk that it has is of before.
    """
    may_have_made = life.initialized and volume.backend_id is None
    return operation.result == Result.DONE or may_have_made


def _place(volume: Volume, life: Life) -> None:
    """Let the attachment be what the state says."""
    place = volume.place
    if place and place.server_id != life.server:
        place.delete()
        Volume.attachment.related.delete_cached_value(volume)
        place = None
    if life.server is None:
        return
    if place is None:
        place = Attachment(volume=volume, server_id=life.server)
        place.index = _free_slot(life.server)
    if life.status is Status.IN_USE and place.attached_at is None:
        place.attached_at = timezone.now()
    place.save()


def _free_slot(server: int) -> int:
    taken = set(
        Attachment.objects.filter(server=server).values_list("index", flat=True)
    )
    # A guest has a disk of its own to start from, which is no volume of ours.
    return next(index for index in range(1, len(taken) + 2) if index not in taken)


def _snapshot(thing: Thing) -> Snapshot | None:
    return thing if isinstance(thing, Snapshot) else None
