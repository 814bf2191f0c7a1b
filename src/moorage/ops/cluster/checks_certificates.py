# SPDX-License-Identifier: BSD-2-Clause
"""Verify that certificates last, and that each node is known by one key."""

import time
from collections.abc import Iterator

from moorage.errors import MoorageError
from moorage.ops.certificates import RENEW_AUTHORITY, RENEW_NODES, authority_on

from .observation import Finding, Seen

AHEAD = 90 * 86400.0
"""Seconds before the end in which somebody should hear of it: the master renews
earlier, so it could not."""


def nodes(seen: Seen) -> Iterator[Finding]:
    """Find certificates of nodes that end soon, and nodes of no known key, or of two.

    Those that have ended make a node silent, and are found with the silent ones.
    """
    for node, facts in seen.nodes():
        if facts.certificate_ends is None:
            continue  # it was asked over no network
        what, ends = f"node {node.name}", facts.certificate_ends
        yield from _ending(seen, what, "its certificate", ends, RENEW_NODES)
        if not node.pins:
            text = "none of its keys is noted: any that was ever signed for it is taken"
            yield Finding(what, text, RENEW_NODES, warning=True)
        if len(node.pins) > 1:
            text = "it is known by two keys: a renewal is under way, or came to no end"
            yield Finding(what, text, RENEW_NODES, warning=True)


def master(seen: Seen) -> Iterator[Finding]:
    """Find certificates of the master that end soon, or have ended."""
    try:
        told = seen.view.answer(authority_on(seen.view))
    except MoorageError as error:
        text = f"nothing is known of its certificates: {error.message}"
        yield Finding("the master", text, error.hint)
        return
    if told is None:
        return  # no network is used, and nobody signs anything
    for what, ends, way_out in (
        ("the master's certificate", told.master_ends, RENEW_NODES),
        ("the authority's certificate", told.authority_ends, RENEW_AUTHORITY),
    ):
        yield from _ending(seen, "the master", what, ends, way_out)
    if told.trusted > 1:
        text = "two authorities are trusted: a renewal is under way, or came to no end"
        yield Finding("the master", text, RENEW_AUTHORITY, warning=True)


def _ending(
    seen: Seen, of: str, what: str, ends: float, way_out: str
) -> Iterator[Finding]:
    left = ends - seen.view.now
    day = time.strftime("%Y-%m-%d", time.gmtime(ends))
    if left < 0:
        yield Finding(of, f"{what} expired on {day}", way_out)
    elif left < AHEAD:
        text = f"{what} expires in {left / 86400:.0f} days, on {day}"
        yield Finding(of, text, way_out, warning=True)
