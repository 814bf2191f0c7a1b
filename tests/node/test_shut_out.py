# SPDX-License-Identifier: BSD-2-Clause
"""Who knows a key that leads no more, or does not lead yet, and is at a node's door."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from moorage.node.calling import key_issuing
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.protocol import TrustMasters
from moorage.protocol.line import LineRequest

from .conftest import Served
from .gate import (
    ASKED,
    ASKS,
    TERM,
    WEB,
    Gate,
    every,
    gate_at,
    lodged,
    order,
    vouched,
)

pytestmark = pytest.mark.memory


@pytest.fixture
async def gate(served: Served, authority: Authority, tmp_path: Path) -> Gate:
    return await gate_at(served, authority, tmp_path)


@pytest.mark.parametrize("who", ["former", "demoted", "copied"])
async def test_who_leads_no_more_is_told_who_does_and_nothing_else(
    gate: Gate, who: str
) -> None:
    """Whatever it asks for, and however far it counts."""
    asked = every(0, TERM, TERM + 1000, (1 << 53) - 1, marks=("", "2" * 32))
    nonsense = [{}, 7, {"verb": "facts"}, {"verb": "x", "args": {}, "term": 1 << 53}]
    async with gate.session(who) as session:
        await gate.said(who, [ASKS], session)  # connected, while its key may be good
        await gate.take_back()
        before = gate.kept
        told = await gate.said(who, [*asked, *nonsense], session)
        assert len(told) == len(asked) + len(nonsense)
        assert {one["error"]["code"] for one in told} == {"stale"}
        for one in told:
            assert one["error"]["facts"] == {"term": TERM, "led": TERM, "leader": "m"}
        # A web socket takes the connection; who is not even former gets no other one.
        wanted = [
            LineRequest(replace(WEB, kind=kind), term)
            for kind in ("serial", "vnc")
            for term in (0, TERM, TERM + 1000, 1 << 62)
        ]
        for one in wanted if who == "former" else wanted[:1]:
            assert (await gate.line(one, session))["code"] == "stale"
    assert gate.kept == before
    assert gate.served.machine.ran == []


async def test_a_candidate_gives_no_order_while_another_leads(gate: Gate) -> None:
    before = gate.kept
    told = await gate.said("candidate", every(TERM, marks=("", "2" * 32)))
    asked = zip(every(TERM, marks=("", "2" * 32)), told, strict=True)
    for call, one in asked:
        if one.keys() == {"result"}:
            assert call["verb"] in ASKED, call
        elif call["verb"] not in ASKED:
            assert one["error"]["code"] == "stale", call
    taken = [one for one in await gate.said("candidate", every(0)) if "result" in one]
    assert len(taken) <= len(ASKED)
    async with gate.session("candidate") as session:
        wanted = LineRequest(WEB, TERM)
        assert (await gate.line(wanted, session))["code"] == "stale"
    assert gate.kept == before
    assert gate.served.machine.ran == []


async def test_the_leader_is_refused_none_of_these(gate: Gate) -> None:
    """Else the tests above would show nothing."""
    told = await gate.said("leader", every(TERM))
    for call, one in zip(every(TERM), told, strict=True):
        if call["verb"] == "state.heed":  # a promise is no order
            continue
        assert one.get("error", {}).get("code") != "stale", call
    async with gate.session("leader") as session:
        found = await gate.line(LineRequest(WEB, TERM), session)
    assert found["code"] != "stale"


NO_TERMS = (-1, -(1 << 63), 1 << 53, 1 << 63, 1 << 64, 7.5, "7", None)
MOST = (1 << 53) - 1


@pytest.mark.parametrize("who", ["leader", "candidate"])
async def test_what_is_no_term_is_refused_at_each_door(gate: Gate, who: str) -> None:
    """One that no request can carry would shut out all masters."""
    lines = [call | {"term": one} for call in every(0) for one in NO_TERMS]
    told = await gate.said(who, lines)
    assert {one["error"]["code"] for one in told} == {"bad-input"}
    async with gate.session(who) as session:
        for one in NO_TERMS:
            asked = {"line": {"uuid": "web1", "name": "web1"}, "term": one}
            assert (await gate.line(asked, session))["code"] == "bad-input"
        for mark in ("x\n8 y", "a" * 33):
            asked = {"line": {"uuid": "x", "name": "x"}, "term": TERM, "mark": mark}
            assert (await gate.line(asked, session))["code"] == "bad-input"
    assert gate.term == TERM


async def test_of_two_candidates_one_is_promised_a_term(gate: Gate) -> None:
    """And the other gives no order in it, whatever it says first."""
    claim = {"verb": "state.heed", "args": {}, "term": TERM + 100}
    both = ("candidate", "demoted")  # a candidate still
    told = await asyncio.gather(*(gate.said(who, [claim]) for who in both))
    won = [who for who, (one,) in zip(both, told, strict=True) if "result" in one]
    assert len(won) == 1
    (lost,) = {*both} - {*won}
    for who in (lost, "leader"):
        for call in (claim, claim | {"mark": "2" * 32}, order() | {"term": TERM + 100}):
            (said,) = await gate.said(who, [call])
            assert said["error"]["code"] == "stale", who
    (said,) = await gate.said(won[0], [order() | {"term": TERM + 100}])
    assert said.keys() == {"result"}


async def test_a_list_is_taken_of_nobody_but_who_leads(gate: Gate) -> None:
    """Whether it is one of before, of another cluster, or the present one."""
    before = gate.kept
    own = gate.certificates("candidate")
    lists = (own, gate.certificates("leader", "candidate"), gate.certificates("former"))
    for certificates in lists:
        for kind in ("keys.masters", "keys.trust"):
            name = "certificates" if kind == "keys.masters" else "authorities"
            call = {"verb": kind, "args": {name: certificates}}
            for term in (TERM - 1, TERM):
                (said,) = await gate.said("candidate", [call | {"term": term}])
                assert said["error"]["code"] == "stale"
    strange = {"certificates": gate.certificates("former"), "issued": 1 << 60}
    (said,) = await gate.said(
        "leader", [{"verb": "keys.masters", "args": strange, "term": TERM}]
    )
    assert "without the one that tells it" in said["error"]["message"]
    assert gate.kept == before


async def test_of_two_lists_the_later_one_counts_whichever_comes_last(
    gate: Gate,
) -> None:
    """One that was held up on its way would let in again who was taken back."""
    early = {"certificates": gate.certificates("leader", "candidate", "demoted")}
    late = {"certificates": gate.certificates("leader", "candidate")}
    call = {"verb": "keys.masters", "term": TERM, "mark": "1" * 32}
    (said,) = await gate.said("leader", [call | {"args": late, "number": 1002}])
    assert said.keys() == {"result"}
    (said,) = await gate.said("leader", [call | {"args": early, "number": 1001}])
    assert said["error"]["code"] == "stale"
    (said,) = await gate.said("demoted", [ASKS])
    assert said["error"]["code"] == "stale"


async def test_whom_a_key_let_in_that_was_taken_back_goes_with_it(
    gate: Gate, tmp_path: Path
) -> None:
    """A thief who is a candidate may sign as many keys as it likes, of any date."""
    ahead = Authority(gate.keys["demoted"].directory, lambda: 9e9)
    gate.keys["child"] = vouched(ahead, tmp_path / "child")
    async with gate.session("child") as session:
        (said,) = await gate.said("child", [ASKS], session)
        assert said.keys() == {"result"}  # as long as its parent is one
        await gate.take_back()
        (said,) = await gate.said("child", [ASKS], session)
        assert said["error"]["code"] == "stale"
    with pytest.raises(aiohttp.ClientError):
        await gate.said("child", [ASKS])


async def test_a_candidate_lets_nobody_in_as_the_leader(
    gate: Gate, tmp_path: Path
) -> None:
    """A key that follows another one has its rights: whose it is, the signer says."""
    candidate, leader = gate.keys["candidate"], gate.keys["leader"]
    key = tls.new_key()
    later = Authority(candidate.directory, lambda: 9e9)
    signed = later._sign(key.public_key(), tls.who(leader.own))
    gate.keys["false"] = lodged(candidate, tmp_path / "false", key, signed)
    told = await gate.said("false", every(TERM))
    for call, one in zip(every(TERM), told, strict=True):
        assert call["verb"] in ASKED or one["error"]["code"] == "stale", call


async def test_another_clusters_master_is_nobody(
    gate: Gate, other_authority: Authority
) -> None:
    others = other_authority.directory / "ca.pem"
    others.write_bytes((gate.keys["leader"].directory / "ca.pem").read_bytes())
    gate.keys["stranger"] = Authority(other_authority.directory)
    with pytest.raises(aiohttp.ClientError):
        await gate.said("stranger", [ASKS])


async def test_a_clock_that_was_ahead_lets_nobody_in_again(
    gate: Gate, authority: Authority, tmp_path: Path
) -> None:
    """Who was let in while it was, has a later date than the list without it."""
    ahead = Authority(authority.directory, lambda: authority.clock() + 86400.0)
    gate.keys["ahead"] = vouched(ahead, tmp_path / "ahead")
    (said,) = await gate.said("ahead", [ASKS])  # the master vouches for it
    assert said.keys() == {"result"}
    gate.keys["leader"] = Authority(authority.directory)  # as after a start
    await gate.tell("candidate")
    (said,) = await gate.said("ahead", [ASKS])
    assert said["error"]["code"] == "stale"


def test_the_next_master_knows_the_dates_of_those_on_record(
    authority: Authority, tmp_path: Path
) -> None:
    """It tells all nodes who is on record before it takes anybody back."""
    ahead = Authority(authority.directory, lambda: authority.clock() + 86400.0)
    late, other = (vouched(ahead, tmp_path / name) for name in ("late", "next"))
    texts = tuple(tls.pem(one.own).decode() for one in (other, late))
    issued = [
        key_issuing.outgoing(other, "n", TrustMasters(certificates=known)).issued
        for known in (texts, texts[:1])
    ]
    assert min(issued) >= late.own.serial_number >> tls.RANDOM_BITS
    assert max(issued) < 2 * min(issued)
