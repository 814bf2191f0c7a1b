# SPDX-License-Identifier: BSD-2-Clause
"""Quotas, and what is used of them."""

from collections.abc import Mapping

from msgspec import Struct, field

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest
from moorage_cloud.models import VolumeType
from moorage_cloud.verbs import quota

routes = Routes()
ONE = "/os-quota-sets/{project_id}"
CLASS = "/os-quota-class-sets/{class_name}"
RULE = "volume_extension:quotas"
NOWHERE = {"backups": 0, "backup_gigabytes": 0, "groups": 0}
"""What clients look for and nobody can have here."""
PER_VOLUME = "per_volume_gigabytes"
_NO_RESOURCES = frozenset({"tenant_id", "project_id", "force", "skip_validation", "id"})
Amount = int | str | dict[str, int]


class QuotaQuery(Struct, frozen=True):
    """Whether what is used is to be told as well."""

    usage: bool = False


class QuotaBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits, by resource; with usage, each with what is in use of it."""

    quota_set: dict[str, int | str | dict[str, int] | None]


class QuotaClass(Struct, frozen=True):
    """What a project has unless it was given something else."""

    quota_class_set: dict[str, int | str]


class Absolute(Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits of the project of the token, and what it uses."""

    max_total_volumes: int
    max_total_snapshots: int
    max_total_volume_gigabytes: int
    max_total_backups: int = 0
    max_total_backup_gigabytes: int = 0
    total_volumes_used: int
    total_gigabytes_used: int
    total_snapshots_used: int
    total_backups_used: int = 0
    total_backup_gigabytes_used: int = 0


class Limits(Struct, frozen=True):
    """Limits; none is of requests in a time."""

    absolute: Absolute
    rate: list[str] = []


class LimitsShown(Struct, frozen=True):
    """Limits."""

    limits: Limits


class LimitsQuery(Struct, frozen=True):
    """Whose limits, for administrators."""

    project_id: str | None = field(default=None)
    tenant_id: str | None = None


@routes("GET", ONE)
def show_quota(call: Call, project_id: str, query: QuotaQuery) -> QuotaBody:
    """Show what a project may use; with usage, what it does."""
    call.check(f"{RULE}:show", {"project_id": project_id})
    limits = _limits(quota.limits(project_id))
    if not query.usage:
        return QuotaBody({"id": project_id, **limits})
    used = quota.usage(project_id)
    return QuotaBody(
        {"id": project_id}
        | {
            name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
            for name, limit in limits.items()
        }
    )


@routes("GET", ONE + "/defaults")
def show_defaults(call: Call, project_id: str) -> QuotaBody:
    """Show what a project has unless it was given something else."""
    call.check(f"{RULE}:show", {"project_id": project_id})
    return QuotaBody({"id": project_id, **_limits(quota.limits(""))})


@routes("PUT", ONE, rule=f"{RULE}:update")
def update_quota(call: Call, project_id: str, body: QuotaBody) -> QuotaBody:
    """Give a project other limits; -1 is none."""
    known = _limits(quota.limits(project_id))
    wanted = {
        name: _limit(name, amount, known)
        for name, amount in body.quota_set.items()
        if name not in _NO_RESOURCES and amount is not None
    }
    quota.set_limits(project_id, wanted)
    return QuotaBody({**_limits(quota.limits(project_id))})


@routes("DELETE", ONE, rule=f"{RULE}:delete")
def delete_quota(call: Call, project_id: str) -> None:
    """Let a project have what the settings say."""
    quota.reset_limits(project_id)


@routes("GET", CLASS, rule="volume_extension:quota_classes:get")
def show_class(call: Call, class_name: str) -> QuotaClass:
    """Show what a project has unless it was given something else."""
    return QuotaClass({"id": class_name, **_limits(quota.limits(""))})


@routes("PUT", CLASS, rule="volume_extension:quota_classes:update")
def update_class(call: Call, class_name: str) -> None:
    """Refuse: what a project has by default, the settings say."""
    raise BadRequest("what a project has by default, the settings say here")


@routes("GET", "/limits", rule="limits_extension:used_limits")
def show_limits(call: Call, query: LimitsQuery) -> LimitsShown:
    """Show the limits of the project of the token."""
    project = call.identity.project_id
    other = query.project_id or query.tenant_id
    if other and call.version >= (3, 39) and call.who.admin:
        project = other
    limits, used = quota.limits(project), quota.usage(project)
    return LimitsShown(
        Limits(
            Absolute(
                max_total_volumes=limits["volumes"],
                max_total_snapshots=limits["snapshots"],
                max_total_volume_gigabytes=limits["gigabytes"],
                total_volumes_used=used["volumes"],
                total_gigabytes_used=used["gigabytes"],
                total_snapshots_used=used["snapshots"],
            )
        )
    )


def _limits(known: Mapping[str, int]) -> dict[str, int]:
    """Return all limits; a type without one of its own has none."""
    names = VolumeType.objects.filter(deleted=False).values_list("name", flat=True)
    of_types = {
        f"{resource}_{name}": -1 for name in names for resource in quota.RESOURCES
    }
    return {**of_types, **known, PER_VOLUME: CONF.max_volume_size, **NOWHERE}


def _limit(name: str, amount: object, known: Mapping[str, int]) -> int:
    if name not in known or name in {PER_VOLUME, *NOWHERE}:
        raise BadRequest(f"there is no quota of '{name}' to be set here")
    try:
        limit = int(str(amount))
    except ValueError:
        limit = -2
    if not -1 <= limit < 2**31:
        raise BadRequest(
            f"Invalid input for field/attribute {name}. Value: {amount}. A limit is -1 "
            "or a whole number"
        )
    return limit
