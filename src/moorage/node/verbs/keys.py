# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on the keys that a node serves with."""

from moorage.errors import NotSupported
from moorage.node.keys import Keys
from moorage.protocol import MakeRequest, Report, TakeCertificate, TrustAuthorities

from .context import NodeContext


async def request(at: NodeContext, _args: MakeRequest, _report: Report) -> str:
    """Return the request for a certificate of a new key of this node, as PEM."""
    return _keys(at).request()


async def take(at: NodeContext, args: TakeCertificate, _report: Report) -> None:
    """Serve with a new certificate from now on."""
    _keys(at).take(args.certificate)


async def trust(at: NodeContext, args: TrustAuthorities, _report: Report) -> None:
    """Take orders from whoever one of some authorities signed, and nobody else."""
    _keys(at).trust(args.authorities)


def _keys(at: NodeContext) -> Keys:
    if at.keys is None:
        raise NotSupported(f"node {at.name} is asked over no network: it has no keys")
    return at.keys


VERBS = (
    MakeRequest.done_by(request),
    TakeCertificate.done_by(take),
    TrustAuthorities.done_by(trust),
)
"""Every verb on keys."""
