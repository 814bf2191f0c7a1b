# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on the keys that a node serves with."""

from typing import Any

from msgspec import Struct

from moorage.errors import NotSupported
from moorage.node.hypervisors.base import Report
from moorage.node.keys import Keys

from .station import Station


class KeyArgs(Struct, frozen=True, kw_only=True):
    """Arguments of the verbs on keys.

    Attributes
    ----------
    certificate
        Of this node, as PEM.
    authorities
        Certificates of those to trust, as PEM.
    """

    certificate: str = ""
    authorities: tuple[str, ...] = ()


async def request(at: Station, _args: KeyArgs, _report: Report) -> str:
    """Return the request for a certificate of a new key of this node, as PEM."""
    return _keys(at).request()


async def take(at: Station, args: KeyArgs, _report: Report) -> None:
    """Serve with a new certificate from now on."""
    _keys(at).take(args.certificate)


async def trust(at: Station, args: KeyArgs, _report: Report) -> None:
    """Take orders from whoever one of some authorities signed, and nobody else."""
    _keys(at).trust(args.authorities)


def _keys(at: Station) -> Keys:
    if at.keys is None:
        raise NotSupported(f"node {at.name} is asked over no network: it has no keys")
    return at.keys


VERBS: dict[str, Any] = {
    "keys.request": request,
    "keys.take": take,
    "keys.trust": trust,
}
"""Every verb on keys."""
