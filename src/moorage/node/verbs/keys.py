# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on the keys that a node serves with."""

from functools import partial

from moorage.errors import NotSupported
from moorage.node.certificates.keys import Keys
from moorage.protocol import (
    MakeMasterRequest,
    MakeRequest,
    Report,
    TakeCertificate,
    TakeMasterKey,
    TrustAuthorities,
    TrustMasters,
)

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


async def trust_masters(at: NodeContext, args: TrustMasters, _report: Report) -> None:
    """Take orders from masters of these certificates, and from nobody else."""
    at.machine.adopt(args.doors)
    _keys(at).trust(args.certificates, args.former, args.issued)


async def master_request(
    at: NodeContext, _args: MakeMasterRequest, _report: Report
) -> str:
    """Return the request for a certificate of a new key to lead with, as PEM."""
    return await at.copies.run(at.copies.request_key)


async def take_master(at: NodeContext, args: TakeMasterKey, _report: Report) -> None:
    """Keep a certificate to lead with, beside its key."""
    await at.copies.run(partial(at.copies.take_key, args.certificate, args.key))


def _keys(at: NodeContext) -> Keys:
    if at.keys is None:
        raise NotSupported(f"node {at.name} is asked over no network: it has no keys")
    return at.keys


VERBS = (
    MakeRequest.done_by(request),
    TakeCertificate.done_by(take),
    TrustAuthorities.done_by(trust),
    TrustMasters.done_by(trust_masters),
    MakeMasterRequest.done_by(master_request),
    TakeMasterKey.done_by(take_master),
)
"""Every verb on keys."""
