# SPDX-License-Identifier: BSD-2-Clause
"""What of the master's calls is for its own authority: signing, and what it says.

Jobs ask for it as they ask nodes, so that it stands in their journal.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.model import Node
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import listed
from moorage.protocol import (
    AbandonAuthority,
    AnnounceTrust,
    AuthorityFacts,
    GetAuthority,
    GetPins,
    HandKeyOver,
    KeyRequest,
    MakeMasterRequest,
    MakeRequest,
    MasterRequest,
    PrepareAuthority,
    RenewMaster,
    RequestKey,
    RequestMaster,
    RetireAuthority,
    SignKey,
    SwitchAuthority,
    TakeCertificate,
    TakeMasterKey,
    TrustMasters,
    Verb,
)


def _facts(authority: Authority) -> AuthorityFacts:
    """Return whose certificates there are on the master, and until when."""
    return AuthorityFacts(
        authority=tls.fingerprint(authority.certificate),
        authority_ends=tls.ends(authority.certificate),
        master_ends=tls.ends(authority.own),
        trusted=2 if authority.changing else 1,
        master=_pem(authority.own),
        let_in_by=tls.fingerprint(authority.own),
    )


def _pem(certificate: tls.Certificate) -> str:
    return tls.pem(certificate).decode()


OWN: Mapping[type[Verb[object]], Callable[[Authority], object]] = {
    GetAuthority: _facts,
    PrepareAuthority: Authority.prepare,
    AbandonAuthority: Authority.abandon,
    SwitchAuthority: Authority.switch,
    RetireAuthority: Authority.retire,
}
"""Verbs that go to no node."""


def outgoing(authority: Authority, name: str, call: Verb[object]) -> Verb[object]:
    """Return a call as the node of a name gets it: with what the authority adds."""
    if isinstance(call, RequestKey):
        return MakeRequest()
    if isinstance(call, SignKey):
        asked = _request(name, call.request)
        found = authority.sign_node(asked, name, by_next=call.by_next)
        return TakeCertificate(certificate=_pem(found))
    if isinstance(call, RequestMaster):
        return MakeMasterRequest()
    return _of_masters(authority, call)


def _of_masters(authority: Authority, call: Verb[object]) -> Verb[object]:
    """Return a call about the keys that lead."""
    if isinstance(call, TrustMasters):
        known = [tls.load_certificate(one.encode()) for one in call.certificates]
        return replace(call, issued=authority.told(known))
    if isinstance(call, HandKeyOver):
        signed, key = authority.own_text()
        return TakeMasterKey(certificate=signed, key=key)
    if isinstance(call, AnnounceTrust):
        return TrustMasters(certificates=(_pem(authority.own),))
    return call


def done_here(authority: Authority, call: Verb[object]) -> object:
    """Return what comes of a verb that goes to no node.

    Raises
    ------
    KeyError
        If it is none.
    """
    if isinstance(call, RequestMaster) and call.own:
        return MasterRequest(certificate=_pem(authority.prepare_master()))
    if isinstance(call, RenewMaster):
        authority.renew_master(call.certificate)
        return None
    if isinstance(call, GetPins):
        return tuple(listed(call.certificates))
    return OWN[type(call)](authority)


def goes_nowhere(call: Verb[object]) -> bool:
    """Whether a verb goes to no node."""
    if isinstance(call, RequestMaster):
        return call.own
    return type(call) in OWN or isinstance(call, GetPins | RenewMaster)


def believed(node: Node, call: Verb[object]) -> Node:
    """Return a node as a call takes it: by its certificate alone, if somebody said so.

    That is the way out where the records are older than the nodes' keys, as after a
    copy of the store was put back.
    """
    if isinstance(call, RequestKey) and call.any_key:
        return replace(node, pins=())
    return node


def incoming(
    authority: Authority, name: str, call: Verb[object], result: object, shown: str
) -> object:
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
    if isinstance(call, RequestMaster):
        signed = authority.sign_master(_request(name, str(result)))
        return MasterRequest(certificate=_pem(signed))
    return result


def _request(name: str, text: str) -> tls.Request:
    try:
        return tls.load_request(text.encode())
    except ValueError as error:
        raise BadInput(
            f"what node {name} wants to have signed is no request: {error}"
        ) from None
