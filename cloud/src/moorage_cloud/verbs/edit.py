# SPDX-License-Identifier: BSD-2-Clause
"""What is only on record: names, metadata, what an administrator sets right."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from moorage_cloud.errors import BadRequest
from moorage_cloud.life import CutOff, Status
from moorage_cloud.models import Snapshot, Transfer, Volume

from .asking import Thing
from .caller import Caller
from .changing import begin, changing, changing_snapshot, under_way
from .checks import check_metadata, check_text
from .story import What, tell

SETTABLE = frozenset(
    {Status.AVAILABLE, Status.IN_USE, Status.ERROR, Status.ERROR_DELETING}
)


def update(
    volume: Volume,
    *,
    name: str | None = None,
    description: str | None = None,
    delete_on_termination: bool | None = None,
    read_only: bool | None = None,
    bootable: bool | None = None,
) -> Volume:
    """Change what is given; None leaves it as it is.

    Raises
    ------
    BadRequest
        If a text is too long, or a guest that has the volume would go on to write to
        what is told to be read-only.
    """
    check_text("name", name or "")
    check_text("description", description or "")
    given = {
        "name": name,
        "description": description,
        "delete_on_termination": delete_on_termination,
        "read_only": read_only,
        "bootable": bootable,
    }
    with changing(volume) as held:
        if read_only is not None and held.place:
            raise BadRequest(f"Invalid volume: status must be available ({held.uuid})")
        for field, value in given.items():
            if value is not None:
                setattr(held, field, value)
        held.save()
    return held


def set_metadata(
    thing: Thing, metadata: Mapping[str, str], *, replace: bool = False
) -> dict[str, str]:
    """Add metadata, or replace all of it; return what there is then."""
    with _holding(thing) as held:
        found: dict[str, str] = {} if replace else dict(held.metadata)
        found |= metadata
        check_metadata(found)
        held.metadata = found
        held.save()
    return found


def drop_metadata(thing: Thing, key: str) -> bool:
    """Remove an item of metadata; return whether it was there."""
    with _holding(thing) as held:
        there = key in held.metadata
        if there:
            del held.metadata[key]
            held.save()
    return there


def _holding(thing: Thing) -> AbstractContextManager[Thing]:
    if isinstance(thing, Volume):
        return changing(thing)
    return changing_snapshot(thing)


def update_snapshot(
    snapshot: Snapshot, *, name: str | None = None, description: str | None = None
) -> Snapshot:
    """Change what is given; None leaves it as it is."""
    check_text("name", name or "")
    check_text("description", description or "")
    with changing_snapshot(snapshot) as held:
        held.name = held.name if name is None else name
        held.description = held.description if description is None else description
        held.save()
    return held


def reset_snapshot(who: Caller, snapshot: Snapshot, status: str) -> None:
    """Set a snapshot's status to one that says what is so.

    What a cluster was doing with it that is said to be off is over then.

    Raises
    ------
    BadRequest
        If a verb is under way on a cluster that is on, or there is no such status of a
        snapshot.
    """
    known = (Status.AVAILABLE, Status.ERROR, Status.ERROR_DELETING)
    if status not in known:
        words = ", ".join(known)
        raise BadRequest(f"a status that can be set is {words}, not '{status}'")
    with changing_snapshot(snapshot) as held:
        operation = under_way(held)
        if operation and not operation.backend.offline:
            raise BadRequest(f"snapshot {held.uuid} is {held.status}: it will end")
        if operation:
            begin(held, CutOff("its cluster is off"), who)
            return
        held.status = status
        held.save()


def reset_status(who: Caller, volume: Volume, status: str) -> None:
    """Set a status that says what is so; nothing else can be set.

    Raises
    ------
    BadRequest
        If a verb is under way, or the volume is attached and the status says that it
        is not, or the other way round.
    """
    try:
        wanted = Status(status)
    except ValueError:
        raise BadRequest(f"there is no status '{status}'") from None
    if wanted not in SETTABLE:
        known = ", ".join(sorted(SETTABLE))
        raise BadRequest(f"a status that can be set is {known}, not '{status}'")
    with changing(volume) as held:
        if under_way(held):
            raise BadRequest(
                f"volume {held.uuid} is {held.status}: its cluster will tell how that "
                "ends; 'snf-manage reconcile-servers' asks it now"
            )
        if (wanted == Status.IN_USE) > (held.place is not None):
            raise BadRequest(f"volume {held.uuid} is not attached to any server")
        if (wanted == Status.AVAILABLE) and held.place:
            raise BadRequest(
                f"volume {held.uuid} is attached to server {held.place.server.uuid}: "
                "detach it, by force if need be"
            )
        # An offer is over with the status that says that there is one.
        Transfer.objects.filter(volume=held).delete()
        held.status = wanted
        held.save()
        tell(held, What.RESET, who, why=f"its status was set to {wanted}")
