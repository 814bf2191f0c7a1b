# SPDX-License-Identifier: BSD-2-Clause
"""What keeps a volume from a server, and the smallest change that would help.

An attach is refused with the first of these; who asks why is told all of them.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from moorage_cloud.conf import CONF
from moorage_cloud.errors import (
    BadRequest,
    BuildInProgress,
    Forbidden,
    Refusal,
    Unavailable,
)
from moorage_cloud.life import TABLE, Status, Verb
from moorage_cloud.models import Operation, Outbox, Server, Volume

from .changing import under_way
from .reach import backends_of


class Hindrance(Struct, frozen=True):
    """One thing in the way.

    Attributes
    ----------
    refusal
        What a request is refused with because of it.
    change
        What would take it away, in one sentence.
    waits
        Whether a request is not refused, but has to wait.
    """

    refusal: Refusal
    change: str
    waits: bool = False

    @property
    def why(self) -> str:
        """What it is, in one sentence."""
        return self.refusal.sentence


def refuse(hindrances: Iterable[Hindrance]) -> None:
    """Refuse a request with the first thing that is in its way, if there is one."""
    for one in hindrances:
        raise one.refusal


def of_attach(volume: Volume, server: Server) -> Iterator[Hindrance]:
    """Yield what an attach is refused with, but for the volume's own state."""
    if volume.uncopied:
        yield Hindrance(
            BadRequest(
                f"Invalid volume: the data of volume {volume.uuid} was to be a copy, "
                "and is not there"
            ),
            "delete it, and make the copy again",
        )
    yield from of_server(server)
    yield from _of_drained(server)
    yield from _of_reach(volume, server)
    yield from _of_slots(server)


def all_of(volume: Volume, server: Server) -> list[Hindrance]:
    """Return everything that is in the way of an attach, also what it would wait for.

    None is there for a volume that the server has already.
    """
    place = volume.place
    if place and place.server_id == server.pk and volume.status == Status.IN_USE:
        return []
    found = [*_of_state(volume), *of_attach(volume, server)]
    return [*found, *_of_row(volume, server)]


def of_server(server: Server) -> Iterator[Hindrance]:
    """Yield why a server cannot get or lose a disk now."""
    if server.helper:
        yield Hindrance(
            Forbidden(f"server {server.uuid} only lends its cluster: it has no users"),
            "choose another server",
        )
    elif server.operstate == Server.State.BUILD:
        yield Hindrance(
            BuildInProgress(f"server {server.uuid} is being built"),
            "wait until it is built",
        )
    elif server.action:
        action = server.action.lower()
        yield Hindrance(
            BadRequest(f"server {server.uuid} has a pending action: {action}"),
            "wait until that is over",
        )
    elif server.deleted or server.operstate in {"ERROR", "DESTROYED"}:
        yield Hindrance(
            BadRequest(f"server {server.uuid} is in state {server.operstate}"),
            "choose another server",
        )
    if server.backend.offline:
        yield Hindrance(
            Unavailable(f"the cluster of server {server.uuid} is off"),
            "an administrator says that it is on again, or choose another server",
        )


def _of_drained(server: Server) -> Iterator[Hindrance]:
    """Yield a cluster that is to be emptied."""
    if server.backend.drained:
        yield Hindrance(
            Unavailable(f"the cluster of server {server.uuid} takes nothing new"),
            "an administrator ends that, or choose a server of another cluster",
        )


def _of_reach(volume: Volume, server: Server) -> Iterator[Hindrance]:
    """Yield a cluster that does not see the storage of a volume."""
    seen = backends_of(volume)
    if seen.filter(pk=server.backend_id).exists():
        return
    kind = volume.volume_type
    if kind.domain is None:
        why = (
            f"volume {volume.uuid} is on a cluster whose storage no other one sees; "
            f"server {server.uuid} is on another"
        )
    else:
        why = (
            f"volume {volume.uuid} and server {server.uuid} must have the same volume "
            "template: the server's cluster does not see the storage of type "
            f"'{kind.name}'"
        )
    near = Server.objects.filter(
        backend__in=seen.filter(offline=False, drained=False),
        project=volume.project,
        helper=False,
        deleted=False,
        operstate__in=(Server.State.STARTED, Server.State.STOPPED),
    ).first()
    change = "have a server on a cluster that sees it"
    if near:
        change = f"attach it to server {near.name} ({near.uuid}), which is on one"
    yield Hindrance(BadRequest(why), change)


def _of_slots(server: Server) -> Iterator[Hindrance]:
    """Yield one more disk than an instance can have."""
    # Its own disk, which it starts from, counts.
    others = server.attachments.exclude(index=0).select_related("volume")
    if others.count() + 1 < CONF.max_disks:
        return
    last = others.last()
    yield Hindrance(
        BadRequest(
            f"server {server.uuid} has {CONF.max_disks} disks: no more are possible"
        ),
        f"detach one, such as volume {last.volume.uuid}"
        if last
        else "an administrator allows more",
    )


def _of_state(volume: Volume) -> Iterator[Hindrance]:
    """Yield a state that an attach cannot start from."""
    row, place, operation = TABLE[Verb.ATTACH], volume.place, under_way(volume)
    if volume.status in row.start and place is None and operation is None:
        return
    status = f"volume {volume.uuid} is {volume.status}"
    match volume.status:
        case _ if operation:
            change = "wait until that is over"
            if is_silent(operation):
                status += ", and the cluster that does it does not answer"
                change = "an administrator looks after it, or says that it is off"
        case Status.IN_USE if place:
            status += f" by server {place.server.name} ({place.server.uuid})"
            change = "detach it from there"
        case Status.AWAITING_TRANSFER:
            change = "accept the transfer, or delete it"
        case Status.ERROR | Status.ERROR_DELETING:
            status += f": {volume.fault}" if volume.fault else ""
            change = "an administrator has a cluster look for its data"
        case _:
            change = "an administrator sets its status to what is so"
    yield Hindrance(BadRequest(status), change)


def _of_row(volume: Volume, server: Server) -> Iterator[Hindrance]:
    """Yield what an attach would wait for: one thing at a time is done with data."""
    earlier = Operation.objects.filter(ended=None, data=volume.backend_volume_uuid)
    if earlier.exclude(volume=volume, snapshot=None).exists():
        yield Hindrance(
            BadRequest(f"a copy of volume {volume.uuid} is being made"),
            "it is attached when that is over",
            waits=True,
        )
    silent = Outbox.objects.filter(backend=server.backend, tries__gt=0)
    if silent.exists() and not server.backend.offline:
        yield Hindrance(
            BadRequest(f"the cluster of server {server.uuid} does not answer"),
            "it is attached when the cluster answers",
            waits=True,
        )


def is_silent(operation: Operation) -> bool:
    """Whether its cluster was asked, and has not answered."""
    return Outbox.objects.filter(operation=operation, tries__gt=0).exists()
