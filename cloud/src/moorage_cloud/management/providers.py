# SPDX-License-Identifier: BSD-2-Clause
"""Whether clusters have the provider of a type that is to be made."""

from collections.abc import Callable

from moorage_cloud.clusters import ClusterRefused, ClusterSilent
from moorage_cloud.errors import BadRequest
from moorage_cloud.models import Backend, VolumeType
from moorage_cloud.work import Doors


def check_provider(kind: VolumeType, tell: Callable[[str], None]) -> None:
    """Refuse a provider that no cluster has; tell of each cluster that lacks it.

    Asked are those that see the type's storage, but for those that are off. If none
    answers, nothing is known, and nothing is refused.

    Raises
    ------
    BadRequest
        If clusters answer, and none of them has it.
    """
    asked = kind.domain.backends if kind.domain else Backend.objects
    known: dict[Backend, frozenset[str]] = {}
    doors = Doors()
    try:
        for backend in asked.filter(offline=False):
            try:
                known[backend] = doors(backend).providers()
            except (ClusterRefused, ClusterSilent) as error:
                tell(f"Backend {backend} does not tell its providers: {error}")
    finally:
        doors.close()
    lacking = [one for one, names in known.items() if kind.provider not in names]
    if known and len(lacking) == len(known):
        there = ", ".join(sorted(frozenset().union(*known.values()))) or "none"
        raise BadRequest(f"no cluster has a provider '{kind.provider}'; known: {there}")
    for one in lacking:
        tell(f"Backend {one} has no provider '{kind.provider}' so far")
