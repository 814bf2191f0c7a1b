# SPDX-License-Identifier: BSD-2-Clause
"""Transfers: a volume is offered to another project, with its snapshots."""

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType, structs

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import Page, PageQuery, paged
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.api.wire.versions import since
from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.models import Transfer

from .filters import as_uuid
from .shapes import Text
from .shown import links

routes = Routes()
OLD, NEW = "/os-volume-transfer", "/volume-transfers"
LOW, PAGED = "3.55", "3.59"
SORTABLE = {"id": "uuid", "name": "name", "created_at": "created"}


class NewTransfer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume that is offered."""

    volume_id: str
    name: Text | None = None
    no_snapshots: Annotated[bool, since("3.55")] = False


class CreateTransfer(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for a transfer."""

    transfer: NewTransfer


class Key(Struct, frozen=True, forbid_unknown_fields=True):
    """The key that was told to who offered it."""

    auth_key: str


class AcceptTransfer(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to take a volume."""

    accept: Key


class TransferShown(Struct, frozen=True, kw_only=True):
    """A transfer; its key is told once."""

    id: str
    name: str
    volume_id: str
    links: list[Link]
    created_at: str | UnsetType = UNSET
    auth_key: str | UnsetType = UNSET
    no_snapshots: Annotated[bool | UnsetType, since("3.55")] = UNSET
    source_project_id: Annotated[str | UnsetType, since("3.57")] = UNSET
    destination_project_id: Annotated[str | UnsetType | None, since("3.57")] = UNSET
    accepted: Annotated[bool | UnsetType, since("3.57")] = UNSET


class OneTransfer(Struct, frozen=True):
    """A transfer."""

    transfer: TransferShown


class Transfers(Struct, frozen=True, kw_only=True):
    """Transfers."""

    transfers: list[TransferShown]
    transfers_links: list[Link] | UnsetType = UNSET


class TransfersQuery(PageQuery, frozen=True, kw_only=True):
    """Which transfers are wanted; in pages and in an order from 3.59 on."""

    marker: Annotated[str | None, since(PAGED)] = None
    sort: Annotated[str | None, since(PAGED)] = None
    sort_key: Annotated[str | None, since(PAGED)] = None
    sort_dir: Annotated[str | None, since(PAGED)] = None
    all_tenants: bool = False
    name: str | None = None
    volume_id: str | None = None


@routes("POST", OLD, rule="volume:create_transfer", status=202)
@routes("POST", NEW, low=LOW, rule="volume:create_transfer", status=202)
def offer(call: Call, body: CreateTransfer) -> OneTransfer:
    """Offer a volume."""
    new = body.transfer
    volume = call.volume(new.volume_id)
    if new.no_snapshots and volume.snapshots.filter(deleted=False).exists():
        raise BadRequest(f"volume {volume.uuid} has snapshots, and they go with it")
    made, key = verbs.offer(call.who, volume, new.name or "")
    return OneTransfer(_shown(call, made, detail=True, key=key))


@routes("GET", OLD, rule="volume:get_all_transfers")
@routes("GET", NEW, low=LOW, rule="volume:get_all_transfers")
def list_transfers(call: Call, query: TransfersQuery) -> Transfers:
    """List transfers, by name."""
    return _page(call, query, detail=False)


@routes("GET", OLD + "/detail", rule="volume:get_all_transfers")
@routes("GET", NEW + "/detail", low=LOW, rule="volume:get_all_transfers")
def list_transfers_in_detail(call: Call, query: TransfersQuery) -> Transfers:
    """List transfers."""
    return _page(call, query, detail=True)


@routes("GET", OLD + "/{transfer_id}", rule="volume:get_transfer")
@routes("GET", NEW + "/{transfer_id}", low=LOW, rule="volume:get_transfer")
def show_transfer(call: Call, transfer_id: str) -> OneTransfer:
    """Show a transfer."""
    return OneTransfer(_shown(call, _own(call, transfer_id), detail=True))


@routes("DELETE", OLD + "/{transfer_id}", rule="volume:delete_transfer", status=202)
@routes(
    "DELETE",
    NEW + "/{transfer_id}",
    low=LOW,
    rule="volume:delete_transfer",
    status=202,
)
def withdraw(call: Call, transfer_id: str) -> None:
    """Withdraw an offer."""
    verbs.withdraw(call.who, _own(call, transfer_id))


@routes(
    "POST", OLD + "/{transfer_id}/accept", rule="volume:accept_transfer", status=202
)
@routes(
    "POST",
    NEW + "/{transfer_id}/accept",
    low=LOW,
    rule="volume:accept_transfer",
    status=202,
)
def accept(call: Call, transfer_id: str, body: AcceptTransfer) -> OneTransfer:
    """Take a volume for the project of the token."""
    known = Transfer.objects.select_related("volume")
    one = known.filter(uuid=as_uuid(transfer_id)).first()
    if one is None:
        raise _unknown(transfer_id)
    verbs.accept(call.who, one, body.accept.auth_key)
    return OneTransfer(_shown(call, one, detail=False))


def _own(call: Call, transfer_id: str) -> Transfer:
    one = verbs.offers(call.who).filter(uuid=as_uuid(transfer_id)).first()
    if one is None:
        raise _unknown(transfer_id)
    call.check(call.rule, {"project_id": one.project, "user_id": one.volume.userid})
    return one


def _unknown(transfer_id: str) -> NotFound:
    return NotFound(f"Transfer {transfer_id} could not be found.")


def _page(call: Call, query: TransfersQuery, *, detail: bool) -> Transfers:
    who = call.who if query.all_tenants and call.who.admin else call.own
    found = verbs.offers(who)
    if query.name is not None:
        found = found.filter(name=query.name)
    if query.volume_id is not None:
        found = found.filter(volume__uuid=as_uuid(query.volume_id))
    page: Page = paged(found, query, call.request, SORTABLE)
    return Transfers(
        transfers=[_shown(call, one, detail=detail) for one in page.things],
        transfers_links=page.links or UNSET,
    )


def _shown(call: Call, one: Transfer, *, detail: bool, key: str = "") -> TransferShown:
    told = TransferShown(
        id=str(one.uuid),
        name=one.name,
        volume_id=str(one.volume.uuid),
        links=links(call, "volume-transfers", str(one.uuid)),
        auth_key=key or UNSET,
    )
    if not detail:
        return told
    return structs.replace(
        told,
        created_at=moment(one.created),
        no_snapshots=False,
        source_project_id=one.project,
        destination_project_id=None,
        accepted=False,
    )
