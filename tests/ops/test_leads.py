# SPDX-License-Identifier: BSD-2-Clause
"""verify tells who has led, and who can."""

from msgspec.structs import replace

from moorage.jobs import View
from moorage.model import Lead, LeadChange, LeadFacts, NodeFacts, load
from moorage.ops.certificates import pins_on
from moorage.ops.cluster import checks_leads
from moorage.ops.cluster.observation import Finding, Seen
from moorage.testing.cluster import ClusterBuilder

NOW = 100 * 86400.0
PINS = ("p1", "p2", "p3")
"""Of the keys of node1, which is the master, node2 and node3."""


def seen(*leads: Lead, now: float = NOW, **heard: LeadFacts | None) -> Seen:
    builder = ClusterBuilder(3)
    for number in (1, 2, 3):
        name = f"node{number}"
        known = {"master_certs": (f"certificate {number}",)}
        if number == 1:
            known["led_with"] = ("certificate before",)
        node = replace(builder.objects[name], **known)
        builder.objects[name] = node
    builder.objects["cluster"] = replace(builder.objects["cluster"], leads=leads)
    config = load(1, builder.objects.values())
    pins = (PINS[0], "before", *PINS[1:])
    view = View(config, {pins_on(View(config)): pins}, now=now)
    facts = {
        name: NodeFacts(
            version="1.0",
            certificate_ends=NOW * 2,
            lead=heard.get(name, LeadFacts(key=f"p{name[-1]}", masters=PINS)),
        )
        for name in ("node1", "node2", "node3")
    }
    return Seen(view, facts, {}, {})


def took(term: int, pin: str, *, ago: float = 60.0, key: str = "p3") -> LeadFacts:
    change = LeadChange(term=term, pins=(pin,), time=NOW - ago)
    return LeadFacts(key=key, masters=PINS, changes=(change,))


def changes(*leads: Lead, **heard: LeadFacts | None) -> list[Finding]:
    return list(checks_leads.changes(seen(*leads, **heard)))


def test_a_failover_that_is_on_record_is_a_notice() -> None:
    leads = (
        Lead(term=0, node="node1"),
        Lead(term=102, node="node2", pins=("old",), time=NOW - 100),
    )
    (one,) = changes(*leads, node3=took(102, "old"), node1=took(103, "p2"))
    assert one.notice
    assert "node node2 leads from term 102 on" in one.message
    late = (leads[0], replace(leads[1], time=NOW - 31 * 86400.0))
    assert changes(*late, node3=took(102, "p2")) == []


def test_what_was_before_the_oldest_on_record_accuses_nobody() -> None:
    """The record ends somewhere; masters that take over by themselves fill it."""
    old = [Lead(term=one, node="node1", time=NOW - 50) for one in range(30, 50)]
    found = changes(*old, node3=took(4, "p3"), node1=took(29, "p2"))
    assert all(one.notice for one in found)
    assert any(not one.notice for one in changes(*old, node3=took(31, "p2")))
    assert found[0].message.startswith("10 changes of lead before these, since ")
    assert [one.message.split()[5] for one in found[1:]] == [*map(str, range(40, 50))]


def test_a_failover_that_was_typed_again_is_one() -> None:
    leads = (Lead(term=0, node="node1"), Lead(term=202, node="node2", time=NOW))
    assert all(one.notice for one in changes(*leads, node3=took(102, "p2")))
    early = took(102, "p2", ago=7200.0)
    assert any(not one.notice for one in changes(*leads, node3=early))


def test_a_lead_that_is_not_on_record_is_an_error_while_its_key_is_good() -> None:
    (one,) = changes(node3=took(900, "p2"), node1=took(900, "p2"))
    assert not one.warning
    assert not one.notice
    assert "a key of node node2 was heeded in term 900 by node1, node3" in one.message
    assert "gnt-node remove node2" in one.hint
    (one,) = changes(node3=took(900, "gone"))
    assert one.warning
    assert "a key of none of its nodes" in one.message
    # One that a node still obeys is no less bad for being unknown to the record.
    heard = replace(took(900, "gone"), masters=(*PINS, "gone"))
    (one,) = changes(node3=heard)
    assert not one.warning


def test_the_masters_own_key_may_lead_in_any_term_of_its() -> None:
    assert changes(node3=took(900, "p1")) == []
    assert changes(node3=took(900, "before")) == []  # it was renewed since


def keys(*leads: Lead, now: float = NOW, **heard: LeadFacts | None) -> list[str]:
    found = list(checks_leads.keys(seen(*leads, now=now, **heard)))
    assert all(one.warning and one.hint for one in found)
    return [f"{one.object}: {one.message}" for one in found]


def test_a_candidate_without_a_key_is_named_and_why() -> None:
    assert keys() == []
    (one,) = keys(node2=None)
    assert one.startswith("node node2: it is a candidate without a key to lead with")
    assert "its agent has version 1.0, which is too old" in one
    (one,) = keys(node2=LeadFacts(masters=PINS))
    assert "the job with which the master gives it one did not succeed" in one
    (one,) = keys(node2=LeadFacts(key="other", masters=PINS))
    assert "the one that it has is not on record" in one
    assert keys(now=60.0, node2=LeadFacts(masters=PINS)) == []  # it gets one now


def test_a_node_that_was_not_told_of_the_present_masters_is_named() -> None:
    (one,) = keys(node3=LeadFacts(key="p3", masters=("p1", "p2", "former")))
    assert one.startswith("node node3: it was not told yet whose orders to take now")


def test_more_candidates_than_are_needed_are_a_notice() -> None:
    assert list(checks_leads.many(seen())) == []
    builder = ClusterBuilder(4)
    view = View(load(1, builder.objects.values()))
    (one,) = checks_leads.many(Seen(view, {}, {}, {}))
    assert one.notice
    assert one.message.startswith("4 nodes can take the lead")
    assert "gnt-cluster modify --candidate-pool-size=3" in one.hint
