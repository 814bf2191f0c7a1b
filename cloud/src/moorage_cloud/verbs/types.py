# SPDX-License-Identifier: BSD-2-Clause
"""Volume types: made, changed, deleted. Where the data of a type is, does not change.

Extra specs that begin with ``SNF:`` say it when a type is made; afterwards the type
itself has it.
"""

from collections.abc import Mapping

from django.db import IntegrityError, transaction

from moorage_cloud.errors import BadRequest, Conflict, NotFound
from moorage_cloud.models import ProjectType, StorageDomain, TypeAccess, VolumeType

PLACE = "SNF:"
TEMPLATE, POOL, DOMAIN, DETACHABLE = (
    f"{PLACE}{word}" for word in ("disk_template", "pool", "domain", "detachable")
)
_PLACES = frozenset({TEMPLATE, POOL, DOMAIN, DETACHABLE})


def create_type(
    name: str,
    specs: Mapping[str, str],
    *,
    description: str = "",
    is_public: bool = True,
) -> VolumeType:
    """Make a type.

    Without a spec that says where its data is, it has the storage of the default type.

    Raises
    ------
    BadRequest
        If nothing says where its data is, or what says it is not known.
    Conflict
        If there is one of that name.
    """
    kind = VolumeType(name=name, description=description, is_public=is_public)
    if any(key.startswith(PLACE) for key in specs):
        _place(kind, specs)
    else:
        usual = VolumeType.objects.filter(deleted=False, is_default=True).first()
        if usual is None:
            raise BadRequest(
                f"a type needs the extra spec '{TEMPLATE}': there is no default type "
                "whose storage it could have"
            )
        kind.disk_template, kind.pool = usual.disk_template, usual.pool
        kind.domain, kind.detachable = usual.domain, usual.detachable
    kind.specs = {key: text for key, text in specs.items() if key not in _PLACES}
    try:
        with transaction.atomic():
            kind.save()
    except IntegrityError:
        raise Conflict(f"Volume Type {name} already exists.") from None
    return kind


def _place(kind: VolumeType, specs: Mapping[str, str]) -> None:
    odd = [key for key in specs if key.startswith(PLACE) and key not in _PLACES]
    if odd:
        raise BadRequest(f"there is no extra spec '{odd[0]}'")
    if TEMPLATE not in specs and POOL not in specs:
        raise BadRequest(f"a type needs the extra spec '{TEMPLATE}' or '{POOL}'")
    kind.disk_template, kind.pool = specs.get(TEMPLATE, ""), specs.get(POOL, "")
    kind.detachable = specs.get(DETACHABLE, "true").lower() in {"true", "1", "yes"}
    if DOMAIN in specs:
        domain = StorageDomain.objects.filter(name=specs[DOMAIN]).first()
        if domain is None:
            raise BadRequest(f"there is no storage domain '{specs[DOMAIN]}'")
        kind.domain = domain


def update_type(
    kind: VolumeType,
    *,
    name: str | None = None,
    description: str | None = None,
    is_public: bool | None = None,
) -> VolumeType:
    """Change what is given; `Conflict` if there is another one of that name."""
    if name is not None and name != kind.name and kind.volumes.exists():
        # Quota counts by the name.
        raise Conflict(f"Volume Type {kind.name} has volumes: its name stays")
    kind.name = kind.name if name is None else name
    kind.description = kind.description if description is None else description
    kind.is_public = kind.is_public if is_public is None else is_public
    try:
        with transaction.atomic():
            kind.save()
    except IntegrityError:
        raise Conflict(f"Volume Type {name} already exists.") from None
    return kind


def make_default(kind: VolumeType) -> None:
    """Let a type be the one of whoever names none."""
    with transaction.atomic():
        VolumeType.objects.filter(is_default=True).update(is_default=False)
        kind.is_default = True
        kind.save(update_fields=["is_default", "updated"])


def delete_type(kind: VolumeType) -> None:
    """Delete a type; `BadRequest` if a volume has it, or it is a default."""
    if kind.is_default:
        raise BadRequest(f"Volume Type {kind.uuid} is the default type")
    usual = kind.default_of.first()
    if usual is not None:
        raise BadRequest(
            f"Volume Type {kind.uuid} is the default type of project {usual.project}"
        )
    with transaction.atomic():
        if kind.volumes.filter(deleted=False).exists():
            raise BadRequest("Target volume type is still in use.")
        kind.deleted = True
        kind.save()


def set_specs(kind: VolumeType, specs: Mapping[str, str]) -> None:
    """Set extra specs; `BadRequest` for one that says where the data is."""
    _check_no_place(specs)
    with transaction.atomic():
        held = VolumeType.objects.select_for_update().get(pk=kind.pk)
        held.specs = {**held.specs, **specs}
        held.save()


def drop_spec(kind: VolumeType, key: str) -> bool:
    """Remove an extra spec; return whether it was there."""
    with transaction.atomic():
        held = VolumeType.objects.select_for_update().get(pk=kind.pk)
        there = held.specs.pop(key, None) is not None
        held.save()
    return there


def add_access(kind: VolumeType, project: str) -> None:
    """Let a project use a type that not everybody sees.

    Raises
    ------
    BadRequest
        If everybody sees it.
    Conflict
        If it may already.
    """
    if kind.is_public:
        raise BadRequest(
            "Type access modification is not applicable to public volume type."
        )
    _, new = TypeAccess.objects.get_or_create(volume_type=kind, project=project)
    if not new:
        raise Conflict(
            f"Volume type access for {kind.uuid} / {project} combination already "
            "exists."
        )


def remove_access(kind: VolumeType, project: str) -> None:
    """Let a project use a type no more; it keeps the volumes that it has.

    Raises
    ------
    BadRequest
        If everybody sees it.
    NotFound
        If it may not.
    """
    if kind.is_public:
        raise BadRequest(
            "Type access modification is not applicable to public volume type."
        )
    gone, _ = TypeAccess.objects.filter(volume_type=kind, project=project).delete()
    if not gone:
        raise NotFound(
            f"Volume type access not found for {kind.uuid} / {project} combination."
        )


def set_default(project: str, kind: VolumeType) -> None:
    """Let a project's volumes have a type if they name none.

    Raises
    ------
    BadRequest
        If the project cannot see it.
    """
    if not (kind.is_public or kind.access.filter(project=project).exists()):
        raise BadRequest(
            f"project {project} cannot see volume type {kind.uuid}: it has no access"
        )
    ProjectType.objects.update_or_create(
        project=project,
        defaults={"volume_type": kind},
    )


def unset_default(project: str) -> None:
    """Let a project's volumes have the cloud's default type again."""
    ProjectType.objects.filter(project=project).delete()


def _check_no_place(specs: Mapping[str, str]) -> None:
    for key in specs:
        if key.startswith(PLACE):
            raise BadRequest(f"'{key}' is said when a type is made, and stays")
