# SPDX-License-Identifier: BSD-2-Clause
"""A volume's metadata, all of it or one item."""

import hashlib
from collections.abc import Mapping

import msgspec

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.errors import Changed
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.models import Volume

from .shapes import MetaBody, MetadataBody

routes = Routes()
ALL, ONE = "/volumes/{volume_id}/metadata", "/volumes/{volume_id}/metadata/{key}"
ETAGS = (3, 15)


@routes("GET", ALL, rule="volume:get_volume_metadata")
def list_metadata(call: Call, volume_id: str) -> MetadataBody:
    """Show all metadata."""
    return _all(call, call.volume(volume_id).metadata)


@routes("POST", ALL, rule="volume:create_volume_metadata")
def add_metadata(call: Call, volume_id: str, body: MetadataBody) -> MetadataBody:
    """Add metadata."""
    volume = call.volume(volume_id)
    _check_tag(call, volume)
    return _all(call, verbs.set_metadata(volume, body.metadata))


@routes("PUT", ALL, rule="volume:update_volume_metadata")
def replace_metadata(call: Call, volume_id: str, body: MetadataBody) -> MetadataBody:
    """Replace all metadata."""
    volume = call.volume(volume_id)
    _check_tag(call, volume)
    return _all(call, verbs.set_metadata(volume, body.metadata, replace=True))


@routes("GET", ONE, rule="volume:get_volume_metadata")
def show_item(call: Call, volume_id: str, key: str) -> MetaBody:
    """Show an item."""
    found = call.volume(volume_id).metadata
    if key not in found:
        raise _unknown(volume_id, key)
    return MetaBody({key: found[key]})


@routes("PUT", ONE, rule="volume:update_volume_metadata")
def update_item(call: Call, volume_id: str, key: str, body: MetaBody) -> MetaBody:
    """Set an item."""
    if list(body.meta) != [key]:
        raise BadRequest("Request body and URI mismatch")
    verbs.set_metadata(call.volume(volume_id), body.meta)
    return body


@routes("DELETE", ONE, rule="volume:delete_volume_metadata")
def delete_item(call: Call, volume_id: str, key: str) -> None:
    """Remove an item."""
    if not verbs.drop_metadata(call.volume(volume_id), key):
        raise _unknown(volume_id, key)


def _unknown(volume_id: str, key: str) -> NotFound:
    return NotFound(f"Volume {volume_id} has no metadata with key {key}.")


def _all(call: Call, metadata: Mapping[str, str]) -> MetadataBody:
    if call.version >= ETAGS:
        call.headers["ETag"] = _tag(metadata)
    return MetadataBody(dict(metadata))


def _check_tag(call: Call, volume: Volume) -> None:
    """Refuse a change of metadata that is not what who asks has seen."""
    seen = call.request.headers.get("If-Match")
    if call.version >= ETAGS and seen not in {None, "*", _tag(volume.metadata)}:
        raise Changed("The metadata was changed by somebody else.")


def _tag(metadata: Mapping[str, str]) -> str:
    text = msgspec.json.encode(metadata, order="deterministic")
    return f'"{hashlib.sha256(text).hexdigest()}"'
