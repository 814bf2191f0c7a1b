# SPDX-License-Identifier: BSD-2-Clause
"""How a node gets a new key while it serves: the questions and tasks of that.

The record names the old key and the new one before the node may show the new one, and
drops the old one when it does. So whoever dies in the middle, the node is believed.
What stands there then, two keys, does no harm, and the next renewal ends it.
"""

from collections.abc import Iterator
from typing import Any

from moorage.jobs import Call, Question, Run, Task, View, commit
from moorage.model import Change, Node, successor


def request_on(node: Node, *, any_key: bool = False) -> Question:
    """Ask a node for the request for a certificate of a new key.

    Parameters
    ----------
    any_key
        Ask whoever has the authority's certificate for the node.
    """
    args = (("any_key", True),) if any_key else ()
    return Question(node.uuid, "keys.request", args)


def authority_on(view: View) -> Question:
    """Ask what the authority says of itself; it is on the master."""
    return Question(view.config.cluster.master_node, "authority.facts")


def renewal(
    view: View,
    node: Node,
    *,
    any_key: bool = False,
    **how: Any,  # noqa: ANN401
) -> Iterator[Task]:
    """Yield what gives a node a new key and certificate; there is no way back.

    Parameters
    ----------
    any_key
        As it was asked for the request.
    how
        ``by_next`` if the next authority signs it.
    """
    said = view.answer(request_on(node, any_key=any_key))
    both = successor(node, view.now, pins=(said["shown"], said["pin"]))
    alone = successor(both, view.now, pins=(said["pin"],))
    yield commit(
        f"know node {node.name} by its old key or a new one",
        Change((both,)),
        {node.uuid: node},
        final=True,
    )
    yield Run(
        what=f"give node {node.name} a certificate of its new key",
        node=node.uuid,
        do=Call("keys.take", {"request": said["request"], **how}),
        final=True,
    )
    yield commit(
        f"know node {node.name} by its new key alone",
        Change((alone,)),
        {node.uuid: both},
        final=True,
    )


def on_master(view: View, what: str, verb: str, **how: Any) -> Run:  # noqa: ANN401
    """Return a step of the authority, which is on the master."""
    return Run(what=what, node=view.config.cluster.master_node, do=Call(verb), **how)
