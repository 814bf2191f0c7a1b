# SPDX-License-Identifier: BSD-2-Clause
"""Volume types and their extra specs.

Where the data of a type is, extra specs say that begin with ``SNF:``; a type that is
made without them has the storage of the default type.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import PageQuery, paged
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.versions import since
from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.models import VolumeType
from moorage_cloud.verbs import caller

from .filters import with_metadata
from .shapes import Text

routes = Routes()
ALL, ONE = "/types", "/types/{type_id}"
SPECS = ONE + "/extra_specs"
RULE = "volume_extension:type"
SPEC_RULE = "volume_extension:types_extra_specs"
SORTABLE = {
    "id": "uuid",
    "name": "name",
    "created_at": "created",
    "updated_at": "updated",
    "is_public": "is_public",
}
Specs = dict[Annotated[str, Meta(min_length=1, max_length=255)], Text]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
IS_PUBLIC = "os-volume-type-access:is_public"


class NewType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type that an administrator wants."""

    name: Name
    description: Text | None = None
    extra_specs: Specs | None = None
    is_public: bool = field(name=IS_PUBLIC, default=True)


class CreateType(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for a type."""

    volume_type: NewType


class ChangedType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of a type is to be different."""

    name: Name | None = None
    description: Text | None = None
    is_public: bool | None = None


class UpdateType(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to change a type."""

    volume_type: ChangedType


class TypeShown(Struct, frozen=True, kw_only=True):
    """A type; its extra specs are told to administrators."""

    id: str
    name: str
    description: str
    is_public: bool
    access: bool = field(name=IS_PUBLIC)
    qos_specs_id: str | UnsetType | None = UNSET
    extra_specs: dict[str, str] | UnsetType = UNSET


class OneType(Struct, frozen=True):
    """A type."""

    volume_type: TypeShown


class Types(Struct, frozen=True, kw_only=True):
    """A page of types."""

    volume_types: list[TypeShown]
    volume_type_links: list[Link] | UnsetType = UNSET


class TypesQuery(PageQuery, frozen=True, kw_only=True):
    """Which types are wanted: `is_public` none is for all, which administrators see."""

    is_public: str | None = None
    extra_specs: Annotated[str | None, since("3.52")] = None


class SpecsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Extra specs."""

    extra_specs: Specs


@routes("GET", ALL, rule=f"{RULE}_get_all")
def list_types(call: Call, query: TypesQuery) -> Types:
    """List types."""
    found = caller.types(call.who)
    if call.who.admin and query.is_public not in {None, "none", "None"}:
        wanted = str(query.is_public).lower() in {"true", "1"}
        found = found.filter(is_public=wanted)
    found = with_metadata(found, query.extra_specs, "specs")
    page = paged(found, query, call.request, SORTABLE)
    return Types(
        volume_types=[_shown(call, one) for one in page.things],
        volume_type_links=page.links or UNSET,
    )


@routes("GET", ONE, rule=f"{RULE}_get")
def show_type(call: Call, type_id: str) -> OneType:
    """Show a type; ``default`` is that of volumes that name none."""
    return OneType(_shown(call, _found(call, type_id)))


@routes("POST", ALL, rule=f"{RULE}_create")
def create_type(call: Call, body: CreateType) -> OneType:
    """Make a type."""
    new = body.volume_type
    made = verbs.create_type(
        name=new.name,
        description=new.description or "",
        is_public=new.is_public,
        specs=new.extra_specs or {},
    )
    return OneType(_shown(call, made))


@routes("PUT", ONE, rule=f"{RULE}_update")
def update_type(call: Call, type_id: str, body: UpdateType) -> OneType:
    """Change a type's name, description, or whether everybody sees it."""
    new = body.volume_type
    if new == ChangedType():
        raise BadRequest("Specify volume type name, description or is_public.")
    changed = verbs.update_type(
        _found(call, type_id),
        name=new.name,
        description=new.description,
        is_public=new.is_public,
    )
    return OneType(_shown(call, changed))


@routes("DELETE", ONE, rule=f"{RULE}_delete", status=202)
def delete_type(call: Call, type_id: str) -> None:
    """Delete a type that no volume has."""
    verbs.delete_type(_found(call, type_id))


@routes("GET", ONE + "/encryption", rule="volume_extension:volume_type_encryption:get")
def show_encryption(call: Call, type_id: str) -> dict[str, str]:
    """Tell how volumes of a type are encrypted: they are not."""
    _found(call, type_id)
    return {}


@routes(
    "POST", ONE + "/encryption", rule="volume_extension:volume_type_encryption:create"
)
def encrypt(call: Call, type_id: str) -> None:
    """Refuse: volumes are not encrypted."""
    _found(call, type_id)
    raise BadRequest("volumes are not encrypted here: their storage may be")


@routes("GET", SPECS, rule=f"{SPEC_RULE}:index")
def list_specs(call: Call, type_id: str) -> SpecsBody:
    """Show all extra specs that who asks may see."""
    found = _found(call, type_id)
    return SpecsBody(found.specs if _sees_specs(call) else {})


@routes("POST", SPECS, rule=f"{SPEC_RULE}:create")
def set_specs(call: Call, type_id: str, body: SpecsBody) -> SpecsBody:
    """Set extra specs."""
    verbs.set_specs(_found(call, type_id), body.extra_specs)
    return body


@routes("GET", SPECS + "/{key}", rule=f"{SPEC_RULE}:show")
def show_spec(call: Call, type_id: str, key: str) -> dict[str, str]:
    """Show an extra spec."""
    found = _found(call, type_id)
    if key not in found.specs or not _sees_specs(call):
        raise _unknown(found, key)
    return {key: found.specs[key]}


@routes("PUT", SPECS + "/{key}", rule=f"{SPEC_RULE}:update")
def update_spec(
    call: Call, type_id: str, key: str, body: dict[str, str]
) -> dict[str, str]:
    """Set an extra spec."""
    if list(body) != [key]:
        raise BadRequest("Request body and URI mismatch")
    verbs.set_specs(_found(call, type_id), body)
    return body


@routes("DELETE", SPECS + "/{key}", rule=f"{SPEC_RULE}:delete", status=202)
def delete_spec(call: Call, type_id: str, key: str) -> None:
    """Remove an extra spec."""
    found = _found(call, type_id)
    if not verbs.drop_spec(found, key):
        raise _unknown(found, key)


def _found(call: Call, type_id: str) -> VolumeType:
    return call.volume_type(None if type_id == "default" else type_id)


def _unknown(one: VolumeType, key: str) -> NotFound:
    return NotFound(f"Volume Type {one.uuid} has no extra specs with key {key}.")


def _sees_specs(call: Call) -> bool:
    return call.may("volume_extension:access_types_extra_specs")


def _shown(call: Call, one: VolumeType) -> TypeShown:
    specs = _sees_specs(call)
    return TypeShown(
        id=str(one.uuid),
        name=one.name,
        description=one.description,
        is_public=one.is_public,
        access=one.is_public,
        qos_specs_id=None if specs else UNSET,
        extra_specs=one.specs if specs else UNSET,
    )
