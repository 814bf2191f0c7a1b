# SPDX-License-Identifier: BSD-2-Clause
"""Which projects may use a type that not everybody sees, and what is their default."""

from typing import Annotated

from django.db.models import QuerySet
from msgspec import Meta, Struct

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.models import ProjectType

routes = Routes()
TYPE = "/types/{type_id}"
RULE = "volume_extension:volume_type_access"
DEFAULTS, DEFAULT = "/default-types", "/default-types/{project_id}"
LOW = "3.62"
ProjectId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$|^[0-9a-f-]{36}$")]


class OfProject(Struct, frozen=True, forbid_unknown_fields=True):
    """The project that is meant."""

    project: ProjectId


class AccessShown(Struct, frozen=True):
    """A project that may use a type."""

    volume_type_id: str
    project_id: str


class Accesses(Struct, frozen=True):
    """The projects that may use a type."""

    volume_type_access: list[AccessShown]


class WantedDefault(Struct, frozen=True, forbid_unknown_fields=True):
    """A type, by id or name."""

    volume_type: Annotated[str, Meta(min_length=1, max_length=255)]


class SetDefault(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for another default."""

    default_type: WantedDefault


class DefaultShown(Struct, frozen=True):
    """The type of a project's volumes that name none."""

    project_id: str
    volume_type_id: str


class OneDefault(Struct, frozen=True):
    """The default of a project."""

    default_type: DefaultShown


class Defaults(Struct, frozen=True):
    """The defaults of projects that have one of their own."""

    default_types: list[DefaultShown]


@routes("GET", TYPE + "/os-volume-type-access", rule=f"{RULE}:get_all_for_type")
def list_access(call: Call, type_id: str) -> Accesses:
    """List the projects that may use a type."""
    kind = call.volume_type(type_id)
    if kind.is_public:
        raise NotFound("Access list not available for public volume types.")
    return Accesses(
        [AccessShown(str(kind.uuid), one.project) for one in kind.access.all()]
    )


@routes(
    "POST",
    TYPE + "/action",
    action="addProjectAccess",
    rule=f"{RULE}:addProjectAccess",
    status=202,
)
def add_access(call: Call, type_id: str, body: OfProject) -> None:
    """Let a project use a type."""
    verbs.add_access(call.volume_type(type_id), _plain(body.project))


@routes(
    "POST",
    TYPE + "/action",
    action="removeProjectAccess",
    rule=f"{RULE}:removeProjectAccess",
    status=202,
)
def remove_access(call: Call, type_id: str, body: OfProject) -> None:
    """Let a project use a type no more."""
    verbs.remove_access(call.volume_type(type_id), _plain(body.project))


@routes("GET", DEFAULTS, low=LOW, rule="volume_extension:default_get_all")
def list_defaults(call: Call) -> Defaults:
    """List the defaults of projects that have one of their own."""
    return Defaults([_shown(one) for one in _known()])


@routes("GET", DEFAULT, low=LOW, rule="volume_extension:default_get")
def show_default(call: Call, project_id: str) -> OneDefault:
    """Show a project's own default."""
    found = _known().filter(project=_plain(project_id)).first()
    if found is None:
        raise NotFound(f"Default type for project {project_id} not found.")
    return OneDefault(_shown(found))


@routes("PUT", DEFAULT, low=LOW, rule="volume_extension:default_set_or_update")
def set_default(call: Call, project_id: str, body: SetDefault) -> OneDefault:
    """Give a project a default of its own."""
    try:
        kind = call.volume_type(body.default_type.volume_type)
    except NotFound as error:
        raise BadRequest(error.sentence) from None
    project = _plain(project_id)
    verbs.set_default(project, kind)
    return OneDefault(DefaultShown(project, str(kind.uuid)))


@routes("DELETE", DEFAULT, low=LOW, rule="volume_extension:default_unset", status=204)
def unset_default(call: Call, project_id: str) -> None:
    """Let a project have the cloud's default again."""
    verbs.unset_default(_plain(project_id))


def _known() -> QuerySet[ProjectType]:
    return ProjectType.objects.select_related("volume_type")


def _plain(project: str) -> str:
    """Return a project's id as it is on record: without dashes."""
    return project.replace("-", "")


def _shown(one: ProjectType) -> DefaultShown:
    return DefaultShown(one.project, str(one.volume_type.uuid))
