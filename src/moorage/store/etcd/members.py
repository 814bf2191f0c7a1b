# SPDX-License-Identifier: BSD-2-Clause
"""Whether etcd's members need somebody: who is away, a disk that is full or slow.

Each member is asked by itself. Its quota and how long its disk takes stand in its
metrics only; where those are not served, nothing is said of them.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from moorage.model.store_trouble import StoreHealth, StoreMember, StoreTrouble
from moorage.store.base import StoreError
from moorage.units import MIB

from .gateway import Gateway, Silent, now
from .settings import EtcdSettings

_LIMIT = 3.0
"""Seconds that a member gets for its answers."""
_FULL = 0.8
"""The part of the quota from which it is told."""
_SLOW = "0.128"
"""Seconds of a bucket of etcd's. Members hear of their leader each 0.1 s: when it takes
longer to write something down, they look for another one."""
_RARE = 0.01
"""The part of the writes that may take longer."""
_ENOUGH = 500
"""Writes from which on that part says something."""
_DISK = {
    "etcd_disk_wal_fsync_duration_seconds": "writing its log down",
    "etcd_disk_backend_commit_duration_seconds": "a commit of its database",
}
_QUOTA = "etcd_server_quota_backend_bytes"
_ALARM = re.compile(r"\balarm:(\w+)")
_SAMPLE = re.compile(r'^(\w+)(?:\{le="([^"]*)"\})? (\S+)$', re.MULTILINE)


class _Status(Struct, frozen=True):
    """What a member says of itself; sizes are bytes."""

    version: str = ""
    size: int = field(default=0, name="dbSize")
    used: int = field(default=0, name="dbSizeInUse")
    leader: int = 0
    errors: tuple[str, ...] = ()


class _Member(Struct, frozen=True):
    """What is known of one: its status, or why it gives no answer, or neither."""

    endpoint: str
    why: str = ""
    status: _Status | None = None
    metrics: str = ""


async def health(settings: EtcdSettings) -> StoreHealth:
    """Ask all members, at once; return how they are, and what needs somebody."""
    found = await asyncio.gather(*(_ask(settings, one) for one in settings.endpoints))
    each = (trouble for one in found for trouble in _of(one))
    return StoreHealth(
        engine="etcd",
        members=tuple(map(_shown, found)),
        troubles=(*_alarmed(found), *each, *_mix(found)),
    )


async def troubles(settings: EtcdSettings) -> list[StoreTrouble]:
    """Ask all members, at once; return what needs somebody."""
    return list((await health(settings)).troubles)


def _shown(member: _Member) -> StoreMember:
    quota = _samples(member.metrics).get((_QUOTA, ""))
    return StoreMember(
        name=member.endpoint,
        up=not member.why,
        size=member.status.size if member.status else None,
        quota=int(quota) if quota else None,
    )


async def _ask(settings: EtcdSettings, endpoint: str) -> _Member:
    etcd = Gateway(replace(settings, endpoints=(endpoint,)))
    until = now() + _LIMIT
    try:
        status = await etcd.ask("maintenance/status", {}, _Status, until)
        return _Member(endpoint, "", status, await etcd.metrics(until))
    except Silent as error:
        return _Member(endpoint, error.message)
    except StoreError:  # it is there, and tells this user nothing
        return _Member(endpoint)
    finally:
        await etcd.close()


def _alarmed(found: Sequence[_Member]) -> Iterator[StoreTrouble]:
    """Tell of alarms; each is raised for all members."""
    errors = [each for one in found if one.status for each in one.status.errors]
    for kind in sorted({kind for one in errors for kind in _ALARM.findall(one)}):
        said, command = f"etcd has raised the alarm {kind}", "etcdctl alarm list"
        if kind == "NOSPACE":
            said = "etcd's quota is full: it takes no more writes"
            command = "etcdctl defrag --cluster; etcdctl alarm disarm"
        yield StoreTrouble(said=said, command=command, urgent=True)


def _of(member: _Member) -> Iterator[StoreTrouble]:
    """Tell what one member needs."""
    name, status = f"etcd's member {member.endpoint}", member.status
    if status is None:
        if not member.why:
            return
        yield StoreTrouble(
            said=f"{name} cannot be asked: {member.why}",
            command=f"etcdctl --endpoints={member.endpoint} endpoint health",
        )
        return
    if not status.leader:
        yield StoreTrouble(
            said=f"{name} knows of no leader: it hears too few of the others",
            command=f"etcdctl --endpoints={member.endpoint} endpoint health",
        )
    samples = _samples(member.metrics)
    quota = samples.get((_QUOTA, ""), 0.0)
    if quota and status.size > _FULL * quota:
        used = f"{status.size / quota:.0%} of its {quota / MIB:.0f} MiB"
        free = (status.size - status.used) / MIB
        yield StoreTrouble(
            said=f"{name} has filled {used}; {free:.0f} MiB of that are free again, "
            "once it is defragmented",
            command=f"etcdctl --endpoints={member.endpoint} defrag",
        )
    for metric, what in _DISK.items():
        count = samples.get((f"{metric}_count", ""), 0.0)
        over = count - samples.get((f"{metric}_bucket", _SLOW), count)
        if count >= _ENOUGH and over > _RARE * count:
            yield StoreTrouble(
                said=f"{name} has a slow disk: since it was started, {what} took more "
                f"than {_SLOW} s {over / count:.0%} of the time",
                command=f"etcdctl --endpoints={member.endpoint} check perf",
            )


def _mix(found: Sequence[_Member]) -> Iterator[StoreTrouble]:
    """Tell of members of different versions."""
    versions = sorted({one.status.version for one in found if one.status})
    if len(versions) > 1:
        yield StoreTrouble(
            said=f"etcd's members are of different versions: {', '.join(versions)}",
            command="etcdctl endpoint status",
        )


def _samples(text: str) -> dict[tuple[str, str], float]:
    """Return the numbers in metrics by name and bucket; "" for what has none."""
    found: dict[tuple[str, str], float] = {}
    for name, bucket, number in _SAMPLE.findall(text):
        try:
            found[name, bucket] = float(number)
        except ValueError:
            continue
    return found
