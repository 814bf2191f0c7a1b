# SPDX-License-Identifier: BSD-2-Clause
"""What became of a volume: told where it happens, and read over all clusters."""

from collections.abc import Sequence

from django.utils import timezone

from moorage_cloud.life import Act, Verb
from moorage_cloud.models import Backend, Operation, Server, StoryEntry, Volume
from moorage_cloud.models.volume import EPOCHS

from .asking import Thing, original
from .caller import Caller

What = StoryEntry.What
UNDER_WAY = "under way"
"""The result of what is not over."""


def tell(
    volume: Volume,
    what: str,
    who: Caller | None = None,
    *,
    why: str = "",
    server: Server | None = None,
    backend: Backend | None = None,
) -> None:
    """Write down that something happened, within the transaction that lets it.

    Parameters
    ----------
    volume
        As it is from then on.
    who
        Who asked; None for the service.
    """
    now = timezone.now()
    StoryEntry.objects.create(
        volume=volume,
        what=what,
        why=why,
        project=volume.project,
        userid=who.user if who else "",
        request_id=who.request_id if who else "",
        size=volume.size,
        cluster=backend.clustername if backend else "",
        **_server(server),
        began=now,
        ended=now,
    )


def tell_end(thing: Thing, operation: Operation) -> None:
    """Write down how a verb ended, within the transaction that ends it.

    What was made of another volume stands in that one's story, too.
    """
    assert operation.ended is not None  # noqa: S101 - it is over
    entry = _entry(thing, operation)
    entry.save()
    if operation.verb == Verb.COPY and isinstance(thing, Volume):
        source = original(thing)
        if isinstance(source, Volume):
            lent = _entry(source, operation)
            lent.what, lent.about = What.LENT, f"volume {thing.uuid}"
            lent.save()


def story(
    volume: Volume,
    project: str | None = None,
    *,
    last: int | None = None,
    before: int | None = None,
) -> Sequence[StoryEntry]:
    """Return what became of a volume, the first first; what is under way comes last.

    Its `result` is :data:`UNDER_WAY`, and its `ended` None.

    Parameters
    ----------
    project
        Whose entries alone are told: from when it was theirs. None for all.
    last
        How many are told at most: those at the end. None for all.
    before
        The number of an entry: those before it are told, and nothing under way.
    """
    known = volume.story.all()
    if project is not None:
        known = known.filter(project=project)
    if before is not None:
        known = known.filter(pk__lt=before)
    told = list(reversed(known.order_by("-pk")[:last]))
    if before is None:
        going = volume.operations.filter(ended=None)
        told += [
            _entry(one.snapshot or volume, one)
            for one in going.select_related("backend", "server", "snapshot__volume")
        ]
    return told if last is None else told[-last:]


def _entry(thing: Thing, operation: Operation) -> StoryEntry:
    volume = thing if isinstance(thing, Volume) else thing.volume
    return StoryEntry(
        volume=volume,
        what=operation.verb,
        about="" if thing is volume else f"snapshot {thing.uuid}",
        result=operation.result or UNDER_WAY,
        why=operation.why,
        project=volume.project,
        userid=operation.userid,
        request_id=operation.request_id,
        cluster=operation.backend.clustername,
        epoch=_epoch(operation),
        jobs=operation.jobs,
        size=volume.size,
        **_server(operation.server),
        began=operation.created,
        ended=operation.ended,
    )


def _epoch(operation: Operation) -> int | None:
    """Return the epoch with which a cluster got the volume, or what it copies."""
    if Act.TAKE in operation.acts:
        return operation.generation * EPOCHS
    return operation.borrowed * EPOCHS if Act.BORROW in operation.acts else None


def _server(server: Server | None) -> dict[str, str]:
    """Return how a server is called; a helper is nobody's."""
    if server is None or server.helper:
        return {}
    return {"server": server.name, "server_uuid": str(server.uuid)}
