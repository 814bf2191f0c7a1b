# SPDX-License-Identifier: BSD-2-Clause
"""What of the master's calls is for its own authority: signing, and what it says.

Jobs ask for it as they ask nodes, so that it stands in their journal.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.jobs import Call
from moorage.model import Node

from . import tls
from .authority import Authority


def _facts(authority: Authority) -> dict[str, Any]:
    """Return whose certificates there are on the master, and until when."""
    return {
        "authority": tls.fingerprint(authority.certificate),
        "authority_ends": tls.ends(authority.certificate),
        "master_ends": tls.ends(authority.own),
        "trusted": len(authority.trusted),
    }


OWN: Mapping[str, Callable[[Authority], Any]] = {
    "authority.facts": _facts,
    "authority.prepare": Authority.prepare,
    "authority.abandon": Authority.abandon,
    "authority.switch": Authority.switch,
    "authority.retire": Authority.retire,
    "authority.renew-master": Authority.renew_master,
}
"""Verbs that go to no node."""


def outgoing(authority: Authority, name: str, call: Call) -> Call:
    """Return a call as the node of a name gets it: with what the authority adds."""
    if call.verb == "keys.take":
        asked = _request(name, str(call.args["request"]))
        by_next = call.args.get("by_next") is True
        signed = authority.sign_node(asked, name, by_next=by_next)
        return Call(call.verb, {"certificate": tls.pem(signed).decode()})
    if call.verb == "keys.trust":
        only = call.args.get("only_present") is True
        trusted = [authority.certificate] if only else authority.trusted
        return Call(
            call.verb, {"authorities": [tls.pem(one).decode() for one in trusted]}
        )
    return Call(call.verb) if call.verb == "keys.request" else call


def believed(node: Node, call: Call) -> Node:
    """Return a node as a call takes it: by its certificate alone, if somebody said so.

    That is the way out where the records are older than the nodes' keys, as after a
    copy of the store was put back.
    """
    return replace(node, pins=()) if call.args.get("any_key") is True else node


def incoming(name: str, call: Call, result: Any, shown: str) -> Any:  # noqa: ANN401
    """Return a node's result with what jobs need to know of the keys in it.

    Parameters
    ----------
    shown
        The pin of the key that the node showed with its answer.
    """
    if call.verb == "keys.request":
        wanted = tls.pin(tls.public(_request(name, result)))
        return {"request": result, "pin": wanted, "shown": shown}
    return result


def _request(name: str, text: str) -> tls.Request:
    try:
        return tls.load_request(text.encode())
    except ValueError as error:
        raise BadInput(
            f"what node {name} wants to have signed is no request: {error}"
        ) from None
