# SPDX-License-Identifier: BSD-2-Clause
"""Documents by which clients find out what versions a service speaks."""

from msgspec import UNSET, Struct, UnsetType, field


class Link(Struct, frozen=True):
    """An address, and what it is."""

    rel: str
    href: str


class MediaType(Struct, frozen=True):
    """What bodies are made of."""

    base: str
    type: str


class ApiVersion(Struct, frozen=True, kw_only=True):
    """A major version of a service; `version` is its highest microversion."""

    id: str
    status: str = "CURRENT"
    version: str | UnsetType = UNSET
    min_version: str | UnsetType = UNSET
    updated: str
    links: list[Link]
    media_types: list[MediaType] | UnsetType = field(name="media-types", default=UNSET)


class ApiVersions(Struct, frozen=True):
    """All major versions of a service."""

    versions: list[ApiVersion]


class OneVersion(Struct, frozen=True):
    """One major version of a service."""

    version: ApiVersion


class Values(Struct, frozen=True):
    """A list within a list, as Keystone has it."""

    values: list[ApiVersion]


class KeystoneVersions(Struct, frozen=True):
    """All major versions of identity."""

    versions: Values
