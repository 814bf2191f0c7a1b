# SPDX-License-Identifier: BSD-2-Clause
"""Messages, 3.3: what users are told of verbs that failed."""

from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import PageQuery, paged
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.api.wire.versions import since
from moorage_cloud.errors import NotFound
from moorage_cloud.life import Verb
from moorage_cloud.models import Message

from .filters import as_uuid, equal
from .shown import links

routes = Routes()
ALL, ONE = "/messages", "/messages/{message_id}"
LOW, PAGED = "3.3", "3.5"
SORTABLE = {
    "id": "uuid",
    "created_at": "created",
    "guaranteed_until": "expires",
    "resource_type": "resource",
    "resource_uuid": "resource_uuid",
    "request_id": "request_id",
}
WORDS = {
    Verb.ATTACH: ("002", "attach volume"),
    Verb.EXTEND: ("007", "extend volume"),
    Verb.COPY: ("009", "create snapshot"),
    Verb.DETACH: ("101", "detach volume"),
    Verb.DELETE: ("102", "delete"),
    Verb.CHECK: ("103", "check volume"),
}
"""By verb: the number of Cinder's action, and words; from 101 on, Cinder has none."""
LEVEL = "ERROR"
EVENTS = {
    f"VOLUME_{resource}_{number}_001": {"resource": resource, "verb": verb}
    for verb, (number, _) in WORDS.items()
    for resource in ("VOLUME", "VOLUME_SNAPSHOT")
}
"""What an event's id says."""
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class MessageShown(Struct, frozen=True, kw_only=True):
    """A message; it is kept until `guaranteed_until`."""

    id: str
    event_id: str
    message_level: str = LEVEL
    user_message: str
    request_id: str
    resource_type: str
    resource_uuid: str
    created_at: str
    guaranteed_until: str
    links: list[Link]


class OneMessage(Struct, frozen=True):
    """A message."""

    message: MessageShown


class Messages(Struct, frozen=True, kw_only=True):
    """A page of messages."""

    messages: list[MessageShown]
    messages_links: list[Link] | UnsetType = UNSET


class MessagesQuery(PageQuery, frozen=True, kw_only=True):
    """Which messages are wanted, and from 3.5 on in what part and order."""

    strict_from: ClassVar[str] = "3.31"

    limit: Annotated[Count | None, since(PAGED)] = None
    offset: Annotated[Count, since(PAGED)] = 0
    marker: Annotated[str | None, since(PAGED)] = None
    sort: Annotated[str | None, since(PAGED)] = None
    sort_key: Annotated[str | None, since(PAGED)] = None
    sort_dir: Annotated[str | None, since(PAGED)] = None
    message_level: Annotated[str | None, since(PAGED)] = None
    event_id: Annotated[str | None, since(PAGED)] = None
    resource_type: Annotated[str | None, since(PAGED)] = None
    resource_uuid: Annotated[str | None, since(PAGED)] = None
    request_id: Annotated[str | None, since(PAGED)] = None


@routes("GET", ALL, low=LOW, rule="message:get_all")
def list_messages(call: Call, query: MessagesQuery) -> Messages:
    """List messages."""
    found = verbs.messages(call.who).filter(
        equal(resource=query.resource_type, request_id=query.request_id)
    )
    if query.resource_uuid is not None:
        found = found.filter(resource_uuid=as_uuid(query.resource_uuid))
    if query.event_id is not None:
        found = found.filter(**EVENTS.get(query.event_id, {"verb": None}))
    if query.message_level not in {None, LEVEL}:
        found = found.none()
    page = paged(found, query, call.request, SORTABLE)
    return Messages(
        messages=[_shown(call, one) for one in page.things],
        messages_links=page.links or UNSET,
    )


@routes("GET", ONE, low=LOW, rule="message:get")
def show_message(call: Call, message_id: str) -> OneMessage:
    """Show a message."""
    return OneMessage(_shown(call, _found(call, message_id)))


@routes("DELETE", ONE, low=LOW, rule="message:delete", status=204)
def delete_message(call: Call, message_id: str) -> None:
    """Delete a message."""
    verbs.drop_message(_found(call, message_id))


def _found(call: Call, message_id: str) -> Message:
    one = verbs.messages(call.who).filter(uuid=as_uuid(message_id)).first()
    if one is None:
        raise NotFound(f"Message {message_id} could not be found.")
    call.check(call.rule, {"project_id": one.project})
    return one


def _shown(call: Call, one: Message) -> MessageShown:
    key, (number, what) = str(one.uuid), WORDS[Verb(one.verb)]
    return MessageShown(
        id=key,
        event_id=f"VOLUME_{one.resource}_{number}_001",
        user_message=f"{what}: {one.why}",
        request_id=one.request_id,
        resource_type=one.resource,
        resource_uuid=str(one.resource_uuid),
        created_at=moment(one.created),
        guaranteed_until=moment(one.expires),
        links=links(call, "messages", key),
    )
