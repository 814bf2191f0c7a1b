# SPDX-License-Identifier: BSD-2-Clause
"""What a project may use: taken and given back with what it is used for.

A row of `Usage` for each project and resource is changed by the transaction that makes
or removes what is counted. It can be computed from the volumes and snapshots at any
time, and so be compared and repaired.
"""

from collections import Counter
from collections.abc import Mapping

from django.db import connection, transaction
from django.db.models import Count, F, Sum
from msgspec import Struct

from moorage_cloud.conf import CONF
from moorage_cloud.errors import OverLimit
from moorage_cloud.life import Verb
from moorage_cloud.models import Limit, Operation, Snapshot, Usage, Volume

RESOURCES = ("volumes", "gigabytes", "snapshots")
_WORDS = {
    "volumes": (
        "VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded "
        "for quota '{resource}'."
    ),
    "snapshots": (
        "SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) "
        "exceeded for quota '{resource}'."
    ),
    "gigabytes": (
        "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds "
        "allowed {resource} quota. Requested {more}G, quota is {limit}G and {used}G "
        "has been consumed."
    ),
}


def charge(project: str, kind: str, **deltas: int) -> None:
    """Take from a project's quota, or give back what is below 0.

    Within the transaction that changes what is counted.

    Parameters
    ----------
    kind
        Name of the volume type.
    deltas
        By resource: how much more.

    Raises
    ------
    OverLimit
        If it has no more of something.
    """
    wanted = {
        name: more
        for resource, more in deltas.items()
        if more
        for name in (resource, f"{resource}_{kind}")
    }
    rows = {row.resource: row for row in _held(project, sorted(wanted))}
    known = limits(project)
    for resource, more in sorted(wanted.items()):
        row, limit = rows[resource], known.get(resource, -1)
        if more > 0 and 0 <= limit < row.in_use + more:
            words = _WORDS[resource.partition("_")[0]]
            raise OverLimit(
                words.format(limit=limit, resource=resource, more=more, used=row.in_use)
            )
        row.in_use += more
        row.save(update_fields=["in_use"])


def _held(project: str, resources: list[str]) -> list[Usage]:
    """Return rows, locked; always in one order, so that no two wait for each other."""
    asked = Usage.objects.filter(project=project, resource__in=resources)
    locked = asked.select_for_update().order_by("resource")
    rows = list(locked)
    if len(rows) < len(resources):
        new = [Usage(project=project, resource=name) for name in resources]
        Usage.objects.bulk_create(new, ignore_conflicts=True)
        rows = list(locked.all())
    return rows


def limits(project: str) -> dict[str, int]:
    """Return all limits of a project."""
    own = dict(Limit.objects.filter(project=project).values_list("resource", "limit"))
    return {name: getattr(CONF.quota, name) for name in RESOURCES} | own


def set_limits(project: str, limits: Mapping[str, int]) -> None:
    """Give a project other limits; -1 is none."""
    with transaction.atomic():
        for resource, limit in limits.items():
            Limit.objects.update_or_create(
                project=project, resource=resource, defaults={"limit": limit}
            )


def reset_limits(project: str) -> None:
    """Let a project have what the settings say."""
    Limit.objects.filter(project=project).delete()


def used_by(volume: Volume) -> dict[str, int]:
    """Return what a volume that is held is counted with, its snapshots included.

    They are held from here on: none goes, or is charged, before the transaction ends.
    """
    copies = volume.snapshots.select_for_update().filter(deleted=False).order_by("pk")
    sizes = [one.size for one in copies]
    return {
        "volumes": 1,
        "snapshots": len(sizes),
        "gigabytes": volume.size + sum(sizes),
    }


def usage(project: str) -> dict[str, int]:
    """Return what a project uses."""
    rows = Usage.objects.filter(project=project).values_list("resource", "in_use")
    return dict.fromkeys(RESOURCES, 0) | dict(rows)


class Drift(Struct, frozen=True):
    """A row that says something else than what is there."""

    project: str
    resource: str
    said: int
    true: int


def drifts() -> list[Drift]:
    """Return what is wrong with the rows; no transaction is to be under way."""
    with transaction.atomic():
        # All is read as it was at one moment.
        _on_postgresql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return _compared()


def _compared() -> list[Drift]:
    true = _counted()
    said = {(row.project, row.resource): row.in_use for row in Usage.objects.all()}
    return [
        Drift(*key, said=said.get(key, 0), true=true.get(key, 0))
        for key in sorted(true.keys() | said.keys())
        if true.get(key, 0) != said.get(key, 0)
    ]


def repair() -> list[Drift]:
    """Make the rows right; return what was wrong."""
    with transaction.atomic():
        # Nobody takes or gives back meanwhile, nor makes a row for a first time.
        _on_postgresql("LOCK TABLE cloud_usage IN EXCLUSIVE MODE")
        found = _compared()
        for one in found:
            Usage.objects.update_or_create(
                project=one.project,
                resource=one.resource,
                defaults={"in_use": one.true},
            )
    return found


def _on_postgresql(statement: str) -> None:
    """Run a statement there; on SQLite each transaction has the database alone."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(statement)


def _counted() -> Mapping[tuple[str, str], int]:
    """Return what is used, from the volumes and snapshots themselves."""
    found: Counter[tuple[str, str]] = Counter()

    def add(project: str, resource: str, kind: str, number: int) -> None:
        found[project, resource] += number
        found[project, f"{resource}_{kind}"] += number

    volumes = Volume.objects.filter(deleted=False).order_by()
    for project, kind, number, size in volumes.values_list(
        "project", "volume_type__name"
    ).annotate(Count("id"), Sum("size")):
        add(project, "volumes", kind, number)
        add(project, "gigabytes", kind, size)
    snapshots = Snapshot.objects.filter(deleted=False).order_by()
    for project, kind, number, size in snapshots.values_list(
        "project", "volume__volume_type__name"
    ).annotate(Count("id"), Sum("size")):
        add(project, "snapshots", kind, number)
        add(project, "gigabytes", kind, size)
    # What is being extended is counted as large as it will be.
    grows = Operation.objects.filter(ended=None, verb=Verb.EXTEND)
    for project, kind, more in grows.values_list(
        "volume__project",
        "volume__volume_type__name",
        F("size") - F("volume__size"),
    ):
        add(project, "gigabytes", kind, more)
    return found
