# SPDX-License-Identifier: BSD-2-Clause
"""How a node gets new keys while it serves: the questions and tasks of that.

The record names the old key and the new one before the node may show the new one, and
drops the old one when it does. So whoever dies in the middle, the node is believed.
What stands there then, two keys, does no harm, and the next renewal ends it.
"""

from collections.abc import Generator, Iterator
from typing import Any

from moorage.errors import Failed
from moorage.jobs import Ask, Run, Task, View
from moorage.model import Config, Node, successor
from moorage.protocol import (
    AuthorityFacts,
    Call,
    GetAuthority,
    GetPins,
    KeyRequest,
    MasterRequest,
    RenewMaster,
    RequestKey,
    RequestMaster,
    SignKey,
    TakeMasterKey,
    TellMasters,
    TrustMasters,
)

_LED = 5
"""Former keys of a master that are told from a stranger's."""
RENEW_NODES = "gnt-cluster renew-crypto --new-node-certificates"
RENEW_AUTHORITY = "gnt-cluster renew-crypto --new-cluster-certificate"


def request_on(node: Node, *, any_key: bool = False) -> Ask[KeyRequest]:
    """Ask a node for the request for a certificate of a new key.

    With `any_key`, ask whoever has the authority's certificate for the node.
    """
    return Ask(node.uuid, RequestKey(any_key=any_key))


def authority_on(view: View) -> Ask[AuthorityFacts]:
    """Ask what the authority says of itself; it is on the master."""
    return Ask(view.config.cluster.master_node, GetAuthority())


def pins_on(view: View) -> Ask[tuple[str, ...]]:
    """Ask for the pins of what :func:`leading` yields, in its order."""
    known = tuple(signed for _, signed in leading(view.config))
    return Ask(view.config.cluster.master_node, GetPins(certificates=known))


def leading(config: Config) -> Iterator[tuple[Node, str]]:
    """Yield each certificate of a key that leads, can, or did, and whose it is."""
    for node in config.named(Node):
        for signed in (*node.master_certs, *node.led_with):
            yield node, signed


def renewal(
    view: View, node: Node, *, any_key: bool = False, by_next: bool = False
) -> Generator[Task, None, Node]:
    """Yield what gives a node a new key and certificate; there is no way back.

    Returns the node as it is recorded then.

    Parameters
    ----------
    any_key
        As it was asked for the request.
    by_next
        Whether the next authority signs it.
    """
    said = view.answer(request_on(node, any_key=any_key))
    if said is None:
        raise Failed(f"node {node.name} was not asked for a request")
    both = successor(node, view.now, pins=(said.shown, said.pin))
    alone = successor(both, view.now, pins=(said.pin,))
    what = f"know node {node.name} by its old key or a new one"
    yield view.record(what, both, final=True)
    yield Run(
        what=f"give node {node.name} a certificate of its new key",
        node=node.uuid,
        do=SignKey(request=said.request, by_next=by_next),
        final=True,
    )
    what = f"know node {node.name} by its new key alone"
    yield view.record(what, alone, final=True)
    return alone


def masters(config: Config) -> TrustMasters:
    """Return what tells a node who may give orders; the master is the first."""
    own = config.cluster.master_node
    nodes = sorted(config.named(Node), key=lambda one: one.uuid != own)
    known = tuple(signed for node in nodes for signed in node.master_certs)
    return TrustMasters(certificates=known, former=config.cluster.former_masters)


def key_request_on(view: View, node: Node) -> Ask[MasterRequest]:
    """Ask a candidate, or the master itself, for the certificate of a new key."""
    own = node.uuid == view.config.cluster.master_node
    return Ask(node.uuid, RequestMaster(own=own))


def new_key(
    view: View, node: Node, asked: Node | None = None
) -> Generator[Task, None, Node]:
    """Yield what gives a candidate, or the master itself, a new key to lead with.

    It may be used before it is recorded, for the master vouches for it. Returns the
    node as it is recorded then.

    Parameters
    ----------
    asked
        The node as it was when it was asked, if it was changed since.
    """
    said = view.answer(key_request_on(view, asked or node))
    if said is None:
        raise Failed(f"node {node.name} was not asked for a key to lead with")
    if node.uuid == view.config.cluster.master_node:
        do = RenewMaster(certificate=said.certificate)
        yield on_master(view, "give the master its new key", do, final=True)
    else:
        yield Run(
            what=f"give node {node.name} a certificate of its key to lead with",
            node=node.uuid,
            do=TakeMasterKey(certificate=said.certificate),
            final=True,
        )
    own = node.uuid == view.config.cluster.master_node
    new = with_key(node, said.certificate, view.now, leads=own)
    what = f"know node {node.name} by its key to lead with"
    yield view.record(what, new, final=True)
    return new


def with_key(node: Node, certificate: str, now: float, *, leads: bool) -> Node:
    """Return a node as it is recorded with a new key to lead with.

    One that `leads` has led with those before.
    """
    before = (*node.led_with, *(node.master_certs if leads else ()))
    led = tuple(one for one in dict.fromkeys(before) if one != certificate)[-_LED:]
    return successor(node, now, master_certs=(certificate,), led_with=led)


def told(view: View, *, without: str = "") -> Iterator[Task]:
    """Yield what tells every node who may give orders from now on.

    One that gives no answer is told by the master when it is back. The node `without`,
    by its uuid, is gone.
    """
    for node in view.config.online():
        if node.uuid != without:
            yield Run(
                what=f"tell node {node.name} whose orders to take",
                node=node.uuid,
                do=TellMasters(),
                final=True,
                tolerant=True,
            )


def on_master(view: View, what: str, do: Call, **how: Any) -> Run:  # noqa: ANN401
    """Return a step of the authority, which is on the master."""
    return Run(what=what, node=view.config.cluster.master_node, do=do, **how)
