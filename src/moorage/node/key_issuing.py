# SPDX-License-Identifier: BSD-2-Clause
"""What of the master's calls is for its own authority: signing, and what it says.

Jobs ask for it as they ask nodes, so that it stands in their journal.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.model import Node
from moorage.protocol import (
    AbandonAuthority,
    AnnounceTrust,
    AuthorityFacts,
    GetAuthority,
    KeyRequest,
    MakeRequest,
    PrepareAuthority,
    RenewMaster,
    RequestKey,
    RetireAuthority,
    SignKey,
    SwitchAuthority,
    TakeCertificate,
    TrustAuthorities,
    Verb,
)

from . import tls
from .authority import Authority


def _facts(authority: Authority) -> AuthorityFacts:
    """Return whose certificates there are on the master, and until when."""
    return AuthorityFacts(
        authority=tls.fingerprint(authority.certificate),
        authority_ends=tls.ends(authority.certificate),
        master_ends=tls.ends(authority.own),
        trusted=len(authority.trusted),
    )


OWN: Mapping[type[Verb[object]], Callable[[Authority], object]] = {
    GetAuthority: _facts,
    PrepareAuthority: Authority.prepare,
    AbandonAuthority: Authority.abandon,
    SwitchAuthority: Authority.switch,
    RetireAuthority: Authority.retire,
    RenewMaster: Authority.renew_master,
}
"""Verbs that go to no node."""


def outgoing(authority: Authority, name: str, call: Verb[object]) -> Verb[object]:
    """Return a call as the node of a name gets it: with what the authority adds."""
    if isinstance(call, RequestKey):
        return MakeRequest()
    if isinstance(call, SignKey):
        asked = _request(name, call.request)
        signed = authority.sign_node(asked, name, by_next=call.by_next)
        return TakeCertificate(certificate=tls.pem(signed).decode())
    if isinstance(call, AnnounceTrust):
        trusted = [authority.certificate] if call.only_present else authority.trusted
        told = tuple(tls.pem(one).decode() for one in trusted)
        return TrustAuthorities(authorities=told)
    return call


def believed(node: Node, call: Verb[object]) -> Node:
    """Return a node as a call takes it: by its certificate alone, if somebody said so.

    That is the way out where the records are older than the nodes' keys, as after a
    copy of the store was put back.
    """
    if isinstance(call, RequestKey) and call.any_key:
        return replace(node, pins=())
    return node


def incoming(name: str, call: Verb[object], result: object, shown: str) -> object:
    """Return a node's result with what jobs need to know of the keys in it.

    Parameters
    ----------
    shown
        The pin of the key that the node showed with its answer.
    """
    if isinstance(call, RequestKey):
        asked = str(result)
        wanted = tls.pin(tls.public(_request(name, asked)))
        return KeyRequest(request=asked, pin=wanted, shown=shown)
    return result


def _request(name: str, text: str) -> tls.Request:
    try:
        return tls.load_request(text.encode())
    except ValueError as error:
        raise BadInput(
            f"what node {name} wants to have signed is no request: {error}"
        ) from None
