# SPDX-License-Identifier: BSD-2-Clause
"""What is done with a server itself: it is built, started and stopped, and removed.

A server is removed in steps, each on record before the next begins: what is attached
leaves it, or is deleted where its owner said so; then its cluster removes the instance,
with the disk that it starts from. A step that fails ends the removal, and whoever
asks for it again goes on from there.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial

from django.db import transaction
from django.utils import timezone

from moorage_cloud.conf import CONF
from moorage_cloud.errors import (
    BadRequest,
    BuildInProgress,
    Conflict,
    NotFound,
    Unavailable,
)
from moorage_cloud.life import (
    Delete,
    Detach,
    Done,
    Failed,
    Found,
    Perished,
    Result,
    Verb,
)
from moorage_cloud.models import Backend, Operation, Outbox, Server, Volume
from moorage_cloud.requests import (
    Build,
    Reboot,
    Remove,
    ServerRequest,
    ShutDown,
    StartUp,
    to_json,
)

from .caller import Caller
from .changing import By, begin, changing, under_way
from .checks import check_text

Action = Server.Action
POWER = frozenset({Action.START, Action.STOP, Action.REBOOT, Action.HARD_REBOOT})
"""What leaves a server running, or stopped."""
REQUESTS: dict[str, Callable[..., ServerRequest]] = {
    Action.BUILD: Build,
    Action.START: StartUp,
    Action.STOP: ShutDown,
    Action.REBOOT: partial(Reboot, hard=False),
    Action.HARD_REBOOT: partial(Reboot, hard=True),
    Action.DESTROY: Remove,
}
BECOMES: dict[str, str] = {
    Action.BUILD: Server.State.STOPPED,
    Action.START: Server.State.STARTED,
    Action.STOP: Server.State.STOPPED,
    Action.REBOOT: Server.State.STARTED,
    Action.HARD_REBOOT: Server.State.STARTED,
    Action.DESTROY: Server.State.DESTROYED,
}
"""The state of a server when its cluster has done what it was asked for."""


@contextmanager
def holding_server(server: Server) -> Iterator[Server]:
    """Hold a server until the end of the transaction; yield it as it is now.

    Its volumes are held before it: whoever attaches one does so in this order.
    """
    with transaction.atomic():
        volumes = Volume.objects.select_for_update(of=("self",))
        list(volumes.filter(attachment__server=server).order_by("pk"))
        held = Server.objects.select_for_update(of=("self",)).select_related("backend")
        yield held.get(pk=server.pk)


def server_request(operation: Operation) -> ServerRequest:
    """Return what a cluster is asked to do with a server."""
    assert operation.server is not None  # noqa: S101 - the operation is about it
    return REQUESTS[operation.verb](instance=operation.server.instance)


def helper_name(backend: Backend) -> str:
    """Return a name for a new helper's instance: one that none had so far."""
    taken = set(backend.servers.values_list("instance", flat=True))
    names = (f"{CONF.prefix}helper-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def build(who: Caller, backend: Backend, instance: str) -> Server:
    """Have a cluster make an instance that only lends it, and is never started."""
    with transaction.atomic():
        made = Server.objects.create(
            name=instance,
            backend=backend,
            instance=instance,
            helper=True,
            operstate=Server.State.BUILD,
        )
        _ask(who, made, Action.BUILD)
    return made


def set_power(who: Caller, server: Server, action: str) -> None:
    """Start a server, stop it, or start it anew; the same again meanwhile is well.

    One that is stopped is started by a hard reboot. One that runs is started, or one
    that is stopped is stopped: its cluster knows better than the record.

    Raises
    ------
    BadRequest
        If it is none of them.
    Conflict
        If something else is under way, a helper works for a volume, or one that does
        not run is to be reset.
    NotFound
        If it was removed meanwhile.
    Unavailable
        If its cluster is off.
    """
    if action not in POWER:
        raise BadRequest(f"a server is started, stopped or rebooted, not '{action}'")
    with holding_server(server) as held:
        if action == Action.HARD_REBOOT and held.operstate == Server.State.STOPPED:
            action = Action.START
        if held.action == action:
            return
        _check(held)
        if action == Action.REBOOT and held.operstate != Server.State.STARTED:
            raise Conflict(
                f"Cannot 'reboot' instance {held.uuid} while it is in vm_state "
                f"{held.operstate.lower()}"
            )
        if held.helper and Operation.objects.filter(server=held, ended=None).exists():
            raise Conflict(f"server {held.uuid} works for a volume")
        _ask(who, held, action)


def rename(server: Server, name: str) -> Server:
    """Call a server otherwise, for its users: its instance keeps its name.

    Raises
    ------
    BadRequest
        If that is no name.
    NotFound
        If it was removed meanwhile.
    """
    name = name.strip()
    if not name:
        raise BadRequest("a server's name has at least one letter")
    check_text("name", name)
    with holding_server(server) as held:
        _check_there(held)
        held.name = name
        held.save(update_fields=["name", "updated"])
        return held


def remove(who: Caller, server: Server) -> None:
    """Remove a server: with its instance and the volume that it starts from.

    Volumes with `delete_on_termination` are deleted; those of which there are
    snapshots, and all others, are detached and keep their data.

    Raises
    ------
    Conflict
        If something else is under way, or there are snapshots of what it starts from.
    Unavailable
        If its cluster is off.
    """
    with holding_server(server) as held:
        if held.deleted or held.removal:
            return
        _check(held)
        for place in held.attachments.filter(index=0).select_related("volume"):
            if _has_snapshots(place.volume):
                raise Conflict(
                    f"server {held.uuid} starts from volume {place.volume.uuid}, of "
                    "which there are snapshots"
                )
        held.action, held.removal, held.fault = Action.DESTROY, timezone.now(), ""
        held.save()
    _free(who, held)


def go_on_removing(server: Server, disks: Collection[str] | None) -> None:
    """Ask for the removal of the instance, if everything has left it.

    Parameters
    ----------
    disks
        The names of the disks that its cluster says that it has; None if there is no
        such instance any more.
    """
    who = Caller(server.userid, server.project)
    if not _free(who, server):
        return
    with holding_server(server) as held:
        asked = Operation.objects.filter(server=held, volume=None, snapshot=None)
        if held.removal is None or held.deleted or asked.filter(ended=None).exists():
            return  # another worker was here first
        own = _started_from(held)
        strays = _volumes(set(disks or ()) - {one.backend_volume_uuid for one in own})
        if strays:
            _failed(
                held,
                f"instance {held.instance} has volume {strays[0]}, which is not on "
                "record there and would go with it: 'snf-manage reconcile-servers' "
                "takes it off",
            )
        elif disks is not None:
            _ask(who, held, Action.DESTROY)
        else:  # nobody knows what became of the disk that it started from
            for volume in own:
                begin(volume, Found(None), who)
            _gone(held)


def server_went_on(server: Server, operation: Operation, event: Done | Failed) -> None:
    """Let what became of a server's operation take effect; both are held."""
    if operation.ended is not None:
        return
    why = event.why if isinstance(event, Failed) else ""
    operation.result = Result.FAILED if why else Result.DONE
    operation.why, operation.ended = why, timezone.now()
    operation.save()
    Outbox.objects.filter(operation=operation).delete()
    if why:
        _failed(server, why)
        return
    if operation.verb == Action.DESTROY:
        for volume in _started_from(server):
            begin(volume, Perished(), Caller(server.userid, server.project))
        _gone(server)
        return
    server.operstate, server.action = BECOMES[operation.verb], ""
    server.save()


def server_is(server: Server, state: str) -> None:
    """Write down how a server was found, unless something was done with it since."""
    with _as_it_was(server) as held:
        if held:
            held.operstate = state
            held.save()


def server_is_gone(server: Server) -> None:
    """Write down that a server's instance is gone, unless a volume is on record there.

    That volume is set right first, by itself: its data may be where it was.
    """
    with _as_it_was(server) as held:
        if held is None:
            return
        if held.attachments.exists():
            raise Conflict(
                f"server {held.pk} has volumes on record: set its disks right first"
            )
        _gone(held)


@contextmanager
def _as_it_was(server: Server) -> Iterator[Server | None]:
    """Hold a server; yield None if it is not as it was when it was read."""
    with holding_server(server) as held:
        same = held.updated == server.updated and not held.deleted
        yield held if same else None


def _check(server: Server) -> None:
    """Refuse what cannot be done with a server now."""
    _check_there(server)
    if server.operstate == Server.State.BUILD:
        raise BuildInProgress(f"server {server.uuid} is being built")
    if server.action:
        raise Conflict(
            f"server {server.uuid} has a pending action: {server.action.lower()}"
        )
    if server.backend.offline:
        raise Unavailable(f"the cluster of server {server.uuid} is off")


def _check_there(server: Server) -> None:
    """Refuse one that was removed since somebody read of it."""
    if server.deleted:
        raise NotFound(f"Instance {server.uuid} could not be found.")


def _ask(who: Caller, server: Server, action: str) -> None:
    """Write down what the cluster is to do with a server that is held."""
    server.action, server.fault = action, ""
    server.save()
    operation = Operation.objects.create(
        verb=action,
        generation=0,
        acts=[action],
        before="",
        size=0,
        backend=server.backend,
        server=server,
        userid=who.user,
        request_id=who.request_id,
        global_request_id=who.global_request_id,
    )
    Outbox.objects.create(
        operation=operation,
        backend=server.backend,
        key=operation.key,
        request=to_json(server_request(operation)),
        not_before=timezone.now(),
    )


def _free(who: Caller, server: Server) -> bool:
    """Let each volume leave a server that is to go, but for what it starts from.

    Return whether all have left. One on which a verb is under way is left for later.
    """
    places = list(server.attachments.exclude(index=0).select_related("volume"))
    for place in places:
        try:
            _let_go(who, server, place.volume)
        except BadRequest as refusal:
            with holding_server(server) as held:
                if held.removal and not held.deleted:
                    _failed(held, refusal.sentence)
            break
    return not places


def _let_go(who: Caller, server: Server, volume: Volume) -> None:
    with changing(volume) as held:
        place = held.place
        if place is None or place.server_id != server.pk or under_way(held):
            return
        # What its cluster could not do is not tried again in the same removal.
        tried = held.operations.filter(
            snapshot=None,
            verb__in=(Verb.DETACH, Verb.DELETE),
            created__gte=server.removal,
        ).last()
        if tried:
            raise BadRequest(f"volume {held.uuid} does not leave it: {tried.why}")
        keeps = held.volume_type.detachable and not held.delete_on_termination
        wish = Detach() if keeps or _has_snapshots(held) else Delete()
        begin(held, wish, who, By(server.backend, server))


def _failed(server: Server, why: str) -> None:
    """Write down that something could not be done; it can be asked for again."""
    if server.action == Action.BUILD:  # there is no such instance
        server.deleted = True
    if server.action in {Action.BUILD, Action.DESTROY}:
        server.operstate = Server.State.ERROR
    server.action, server.removal, server.fault = "", None, why
    server.save()


def _gone(server: Server) -> None:
    server.operstate, server.action = Server.State.DESTROYED, ""
    server.deleted = True
    server.save()


def _started_from(server: Server) -> list[Volume]:
    """Return what a server that is held starts from, if that is a volume."""
    places = server.attachments.filter(index=0)
    return [place.volume for place in places.select_related("volume__volume_type")]


def _has_snapshots(volume: Volume) -> bool:
    return volume.snapshots.filter(deleted=False).exists()


def _volumes(names: Collection[str]) -> list[str]:
    """Return which of some disks are volumes of the service."""
    known = Volume.objects.filter(deleted=False)
    return sorted({one.backend_volume_uuid for one in known} & set(names))
