# SPDX-License-Identifier: BSD-2-Clause
"""How a node gets a new key while it serves: the questions and tasks of that.

The record names the old key and the new one before the node may show the new one, and
drops the old one when it does. So whoever dies in the middle, the node is believed.
What stands there then, two keys, does no harm, and the next renewal ends it.
"""

from collections.abc import Iterator
from typing import Any

from moorage.errors import Failed
from moorage.jobs import Ask, Run, Task, View
from moorage.model import Node, successor
from moorage.protocol import (
    AuthorityFacts,
    Call,
    GetAuthority,
    KeyRequest,
    RequestKey,
    SignKey,
)

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


def renewal(
    view: View, node: Node, *, any_key: bool = False, by_next: bool = False
) -> Iterator[Task]:
    """Yield what gives a node a new key and certificate; there is no way back.

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


def on_master(view: View, what: str, do: Call, **how: Any) -> Run:  # noqa: ANN401
    """Return a step of the authority, which is on the master."""
    return Run(what=what, node=view.config.cluster.master_node, do=do, **how)
