# SPDX-License-Identifier: BSD-2-Clause
"""Verify warns before certificates end, and says whose has ended."""

from typing import Any

import pytest

from moorage import __version__
from moorage.errors import Unreachable
from moorage.jobs import View
from moorage.model import NodeFacts, load
from moorage.ops.certificates import authority_on
from moorage.ops.cluster import checks_certificates, checks_nodes
from moorage.ops.cluster.observation import Finding, ask_facts, see
from moorage.protocol import AuthorityFacts
from moorage.testing.cluster import ClusterBuilder

DAY = 86400.0
NOW = 1_800_000_000.0
"""2027-01-15."""


def found(
    left: float | Exception = 300,
    *,
    master: float = 300,
    authority: float = 300,
    pins: tuple[str, ...] = ("a",),
    trusted: int = 1,
) -> list[Finding]:
    """Return what is found where certificates have some days left."""
    builder = ClusterBuilder(0).node("node1", pins=pins)
    config = load(1, builder.objects.values())
    said: Any = left
    if not isinstance(left, Exception):
        ends = NOW + left * DAY
        said = NodeFacts(version=__version__, certificate_ends=ends)
    own = AuthorityFacts(
        master_ends=NOW + master * DAY,
        authority_ends=NOW + authority * DAY,
        trusted=trusted,
    )
    view = View(config, dict.fromkeys(ask_facts(config), said), now=NOW)
    view = View(config, {**view.answers, authority_on(view): own}, now=NOW)
    seen = see(view)
    checks = (
        checks_nodes.silent,
        checks_certificates.nodes,
        checks_certificates.master,
    )
    return [one for check in checks for one in check(seen)]


def test_nothing_is_said_of_certificates_that_last() -> None:
    assert found() == []
    assert found(91, master=91, authority=91) == []


@pytest.mark.parametrize(
    ("given", "of", "what"),
    [
        ({"left": 89}, "node node1", "its certificate expires in 89 days"),
        ({"master": 89}, "the master", "the master's certificate expires in 89 days"),
        ({"authority": 89}, "the master", "the authority's certificate expires in 89"),
    ],
)
def test_it_warns_90_days_ahead(given: dict[str, Any], of: str, what: str) -> None:
    (one,) = found(**given)
    assert one.warning
    assert one.object == of
    assert one.message.startswith(what)
    assert one.message.endswith(", on 2027-04-14")
    assert one.hint.startswith("gnt-cluster renew-crypto --new-")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"master": -1}, "the master's certificate expired on 2027-01-14"),
        ({"authority": -1}, "the authority's certificate expired on 2027-01-14"),
    ],
)
def test_what_has_ended_is_an_error(given: dict[str, Any], what: str) -> None:
    (one,) = found(**given)
    assert not one.warning
    assert one.message == what


def test_an_expired_node_is_not_taken_for_one_that_is_off() -> None:
    renew = "gnt-cluster renew-crypto --new-node-certificates"
    cause = "no trust in its certificate: it expired on 2027-01-14"
    (one,) = found(Unreachable("...", hint=renew, cause=cause, silent=False))
    assert not one.warning
    assert one.object == "node node1"
    assert cause in one.message
    assert one.hint == renew


def test_a_renewal_that_came_to_no_end_is_told() -> None:
    (two,) = found(pins=("a", "b"))
    assert "it is known by two keys" in two.message
    (none,) = found(pins=())
    assert "none of its keys is noted" in none.message
    (both,) = found(trusted=2)
    assert "two authorities are trusted" in both.message
