# SPDX-License-Identifier: BSD-2-Clause
"""Verify who has led, as nodes saw it, and who can: with which keys."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from moorage.errors import MoorageError
from moorage.model import Cluster, Config, Lead, LeadChange, LeadFacts, Node, NodeFacts
from moorage.ops.certificates import leading, pins_on
from moorage.units import counted

from .observation import Finding, Seen

_TOLD = 30 * 86400.0
"""Seconds for which a change of lead is told."""
_SHOWN = 10
"""Changes of lead that are told one by one."""
_GIVEN = 120.0
"""Seconds that the master gets to give a candidate its key, and to tell nodes."""
_SAME = 3600.0
"""Seconds after which a failover is no repetition of one that was broken off."""
_ENOUGH = 3
"""Candidates; the default."""


def changes(seen: Seen) -> Iterator[Finding]:
    """Find changes of lead that the record does not know; note those that it does."""
    since = seen.view.now - _TOLD
    yield from _on_record(
        [one for one in seen.config.cluster.leads if one.time >= since]
    )
    owners, led = _owners(seen), _owners(seen, former=True)
    if owners is None or led is None:
        return
    odd: dict[tuple[int, tuple[str, ...]], dict[str, float]] = defaultdict(dict)
    for node, told in _told(seen):
        for one in told.changes:
            if one.time >= since and not _known(seen.config, one, led):
                odd[one.term, one.pins][node.name] = one.time
    obeyed = {pin for _, told in _told(seen) for pin in told.masters}
    for (term, pins), where in sorted(odd.items()):
        yield _stranger(owners, term, pins, where, gone=obeyed.isdisjoint(pins))


def _on_record(leads: Sequence[Lead]) -> Iterator[Finding]:
    """Note the last changes of lead, and how many there were before them."""
    if more := leads[:-_SHOWN]:
        told = counted(len(more), "change")
        text = f"{told} of lead before these, since {_moment(more[0].time)}"
        yield Finding("cluster", text, notice=True)
    for lead in leads[-_SHOWN:]:
        what = f"node {lead.node} leads from term {lead.term} on"
        yield Finding("cluster", f"{what}, since {_moment(lead.time)}", notice=True)


def _stranger(
    owners: Mapping[str, Collection[str]],
    term: int,
    pins: Collection[str],
    where: Mapping[str, float],
    *,
    gone: bool,
) -> Finding:
    """Tell a change of lead that is not on record; `gone` if its key opens nothing."""
    whose = [one for one, its in owners.items() if not set(its).isdisjoint(pins)]
    key = f"a key of node {whose[0]}" if whose else "a key of none of its nodes"
    text = (
        f"{key} was heeded in term {term} by {', '.join(sorted(where))}, from "
        f"{_moment(min(where.values()))} on, and no such change of lead is on record: "
        "somebody else has the key, or a failover was broken off"
    )
    if gone:
        return Finding("cluster", f"{text}; no node takes its orders now", warning=True)
    remove = f"gnt-node remove {whose[0]}, if it was stolen; else: " if whose else ""
    return Finding("cluster", text, f"{remove}gnt-cluster renew-crypto")


def _known(
    config: Config, seen: LeadChange, led: Mapping[str, Collection[str]]
) -> bool:
    """Whether who led in a term, by the record, has the key that a node heard then.

    A failover that was broken off, and typed there again, is on record as one. Of terms
    before the oldest on record nobody knows: the record keeps the last changes alone.
    """
    cluster = config.cluster
    before = [one for one in cluster.leads if one.term <= seen.term]
    after = [one for one in cluster.leads if one.term > seen.term]
    if after and not before:
        return True
    here = before[-1] if before else _first(config)
    again = [one for one in after[:1] if abs(one.time - seen.time) < _SAME]
    return any(
        not {*one.pins, *led.get(one.node, ())}.isdisjoint(seen.pins)
        for one in (here, *again)
    )


def _first(config: Config) -> Lead:
    """Return the lead of who had it before any was noted."""
    return Lead(term=0, node=config.node(config.cluster.master_node).name)


def keys(seen: Seen) -> Iterator[Finding]:
    """Find candidates without a key to lead with, and nodes that were not told."""
    owners = _owners(seen)
    if owners is None:
        return
    due = {pin for pins in owners.values() for pin in pins}
    changed = max(one.mtime for one in _who_says(seen.config))
    settled = seen.view.now - changed > _GIVEN
    for node, facts in seen.nodes():
        if node.master_candidate:
            yield from _keyless(node, facts, owners[node.name], settled=settled)
        if facts.lead and settled and set(facts.lead.masters) != due:
            yield Finding(
                f"node {node.name}",
                "it was not told yet whose orders to take now: it takes those of "
                "other keys than are on record",
                f"gnt-node info {node.name}",
                warning=True,
            )


def _who_says(config: Config) -> Iterator[Cluster | Node]:
    """Yield what says whose orders nodes take."""
    yield config.cluster
    yield from config.named(Node)


def _keyless(
    node: Node, facts: NodeFacts, pins: Collection[str], *, settled: bool
) -> Iterator[Finding]:
    if facts.lead is None:
        why = f"its agent has version {facts.version}, which is too old for one"
        hint = "install the same version on all nodes"
    elif not settled or facts.lead.key in pins:
        return
    elif facts.lead.key:
        why = "the one that it has is not on record"
        hint = "gnt-job list"
    else:
        why = "the job with which the master gives it one did not succeed"
        hint = "gnt-job list"
    text = f"it is a candidate without a key to lead with, and cannot take over: {why}"
    yield Finding(f"node {node.name}", text, hint, warning=True)


def many(seen: Seen) -> Iterator[Finding]:
    """Note that there are more candidates than are needed: each can take the lead."""
    nodes = seen.config.named(Node)
    having = sum(node.master_candidate for node in nodes)
    if having > _ENOUGH:
        yield Finding(
            "cluster",
            f"{counted(having, 'node')} can take the lead, and whoever takes one of "
            f"them over, too: {_ENOUGH} are enough",
            f"gnt-cluster modify --candidate-pool-size={_ENOUGH}; "
            "gnt-node modify -C no NODE",
            notice=True,
        )


def _told(seen: Seen) -> Iterator[tuple[Node, LeadFacts]]:
    for node, facts in seen.nodes():
        if facts.lead:
            yield node, facts.lead


def _owners(
    seen: Seen, *, former: bool = False
) -> Mapping[str, Collection[str]] | None:
    """Return the pins of each node's keys to lead with; None if they have none.

    With `former`, of those, too, with which it led before.
    """
    view = seen.view
    try:
        pins = view.answer(pins_on(view))
    except MoorageError:
        return None  # what the master cannot read of its keys is found as such
    if pins is None or not any(facts.certificate_ends for _, facts in seen.nodes()):
        return None
    found: dict[str, list[str]] = {node.name: [] for node in seen.config.named(Node)}
    for (node, signed), pin in zip(leading(seen.config), pins, strict=True):
        if former or signed in node.master_certs:
            found[node.name].append(pin)
    return found


def _moment(when: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(when))
