# SPDX-License-Identifier: BSD-2-Clause
"""Microversions: which one a request asks for, and from when on something is there."""

from collections.abc import Mapping

import microversion_parse
from microversion_parse import Version
from msgspec import Meta

from moorage_cloud.errors import BadRequest

from .errors import NotAcceptable

HEADER = "OpenStack-API-Version"
MARK = "x-openstack"
"""What says in a schema which versions have something."""


def version(text: str) -> Version:
    """Return a version of its text, such as ``3.27``."""
    return microversion_parse.parse_version_string(text)


def since(text: str) -> Meta:
    """Mark a field of a body: before that version there is none."""
    return Meta(extra_json_schema={MARK: {"min-ver": text}})


def until(text: str) -> Meta:
    """Mark a field of a body: after that version there is none."""
    return Meta(extra_json_schema={MARK: {"max-ver": text}})


def marks(meta: Meta) -> tuple[Version | None, Version | None]:
    """Return what :func:`since` and :func:`until` said."""
    said = (meta.extra_json_schema or {}).get(MARK, {})
    low, high = said.get("min-ver"), said.get("max-ver")
    return (version(low) if low else None, version(high) if high else None)


def asked(
    headers: Mapping[str, str], name: str, legacy: str, low: Version, high: Version
) -> Version:
    """Return the version that a request asks for; the lowest if it asks for none.

    Parameters
    ----------
    name
        What the service is called in the header.
    legacy
        An older header that says the version alone; empty for none.

    Raises
    ------
    BadRequest
        If it is no version.
    NotAcceptable
        If the service has no such version.
    """
    text = microversion_parse.get_version(
        dict(headers), name, [legacy] if legacy else None
    )
    if text is None:
        return low
    if text == "latest":
        return high
    try:
        found = version(text)
    except TypeError:
        raise BadRequest(
            f"API Version String {text} is of invalid format. Must be of format "
            "MajorNum.MinorNum."
        ) from None
    if not low <= found <= high:
        raise NotAcceptable(
            f"Version {text} is not supported by the API. Minimum is {low} and "
            f"maximum is {high}."
        )
    return found
