# SPDX-License-Identifier: BSD-2-Clause
"""A master that was killed starts again: who was current is waited for, or left out.

What it acknowledges is on each candidate that was current when the one before ended;
one that it goes on without is struck off the record first, and named.
"""

import asyncio
from dataclasses import replace
from typing import Any

from candidates import LEDGER, PATIENT, Town, led, on_disk
from moorage.copies.replication import KIND
from moorage.jobs import Engine
from moorage.ops import parse
from moorage.protocol import GetStanding

TWO = ("node2", "node3")


class Slow:
    """A way to the nodes on which each step on a copy takes its time.

    Attributes
    ----------
    hangs
        A node that answers nothing any more.
    """

    def __init__(self, town: Town, pause: float, hangs: str = "") -> None:
        self.town, self.pause, self.hangs = town, pause, hangs

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        if node.name == self.hangs:
            await asyncio.Event().wait()
        if call.verb.startswith("state.") and not isinstance(call, GetStanding):
            await asyncio.sleep(self.pause)
        return await self.town.nodes.call(node, call, term, report)


def _ledger(town: Town, name: str) -> set[str]:
    return {one for kind, one in on_disk(town, name)[1] if kind == LEDGER}


def _recorded(town: Town) -> set[str]:
    """Return who is on record as current, by name, as the next master reads it."""
    nodes = {town.config_store.config.node(n).uuid: n for n in ("node2", "node3")}
    return {nodes[one] for kind, one in town.store.records if kind == KIND}  # type: ignore[attr-defined]


async def _killed(town: Town, *, ahead: bool = True) -> None:
    """Kill the master, with a commit on its own disk alone."""
    await town.stop()
    if ahead:
        written = [((LEDGER, "0"), b"x")]
        await town.store.commit(written, expected=town.store.head.version)


async def test_what_is_acknowledged_after_a_start_is_on_each_candidate(
    town: Town,
) -> None:
    """They get a whole copy, in steps that each take a while."""
    assert _recorded(town) == {"node2", "node3"}
    await _killed(town)
    again = await led(town.directory, town.nodes, town.store, Slow(town, 0.75), PATIENT)
    await again.commit(1)
    for name in ("node2", "node3"):
        assert _ledger(again, name) == {"0", "1"}
    assert _recorded(again) == {"node2", "node3"}
    await again.stop()


async def test_who_is_current_is_not_known_of_a_store_of_before(town: Town) -> None:
    """No candidate is on record, and each was current: so each is waited for."""
    await _killed(town)
    gone = [((KIND, town.config_store.config.node(one).uuid), None) for one in TWO]
    await town.store.commit(gone, expected=town.store.head.version)
    again = await led(town.directory, town.nodes, town.store, Slow(town, 0.75), PATIENT)
    await again.commit(1)
    for name in TWO:
        assert _ledger(again, name) == {"0", "1"}
    await again.whole(*TWO)
    assert _recorded(again) == {*TWO}
    await again.stop()


async def test_a_candidate_that_gives_no_answer_after_a_start_is_left_out_by_name(
    town: Town,
) -> None:
    await _killed(town)
    way = Slow(town, 0.0, "node3")
    again = await led(town.directory, town.nodes, town.store, way)
    said: list[str] = []
    await again.config_store.commit(None, [((LEDGER, "1"), b"x")], remarks=said)
    assert _recorded(again) == {"node2"}, "it has to be on record before it is told"
    assert _ledger(again, "node2") == {"0", "1"}
    assert _ledger(again, "node3") == set()
    (line,) = said
    assert "the copy of the state on node3 is behind" in line
    assert again.state("node3") == "behind"
    # The next master does not wait for it, and knows that it lacks something.
    await _killed(again, ahead=False)
    third = await led(town.directory, town.nodes, town.store, way)
    await third.whole("node2")
    assert third.state("node3") == "behind"
    await third.commit(2)  # it may have heard a later master, so it is asked once
    async with asyncio.timeout(0.3):
        await third.commit(3)
    # And when it is back, and has all, it is waited for again.
    way.hangs = ""
    await third.stop()
    fourth = await led(town.directory, town.nodes, town.store, way)
    await fourth.whole("node2", "node3")
    assert _recorded(fourth) == {"node2", "node3"}
    await fourth.stop()


async def test_a_copy_of_another_past_does_not_count_as_one_that_has_all(
    town: Town,
) -> None:
    """It has more commits than the store that was put back, and none of its own."""
    await town.commit(1)
    records, version = dict(town.store.records), town.store.head.version  # type: ignore[attr-defined]
    for number in range(2, 12):
        await town.commit(number)
    await town.stop()
    town.store.version, town.store.records = version, records  # type: ignore[attr-defined]
    town.store._sums = {  # type: ignore[attr-defined]
        key: one
        for key, one in town.store._sums.items()  # type: ignore[attr-defined]
        if key in records
    }
    patient = replace(PATIENT, patience=10.0)  # nobody is to be left out here
    way = Slow(town, 0.1)
    again = await led(town.directory, town.nodes, town.store, way, patient)
    await again.commit(100)
    for name in ("node2", "node3"):
        assert _ledger(again, name) == {"1", "100"}
    await again.stop()


async def test_the_job_that_committed_names_who_was_left_out(town: Town) -> None:
    engine = Engine(town.config_store, town.nodes, parse)
    await engine.start({})
    town.nodes.cut_power("node3")
    number = await engine.submit([{"OP_ID": "OP_TEST_DELAY", "duration": 0.01}])
    job = await engine.finished(number)
    log = [entry[3] for op in job.ops for entry in op.log]
    told = [line for line in log if "state on node3 is behind" in line]
    assert len(told) == 1, log
    stored = await town.log.read("job", str(number))
    assert b"state on node3 is behind" in stored[str(number)]
    await engine.stop()


async def test_who_is_demoted_or_off_is_struck_off(town: Town) -> None:
    await town.mark("node3", master_candidate=False)
    await town.until(lambda: _recorded(town) == {"node2"})
    await town.mark("node2", offline=True)
    await town.until(lambda: _recorded(town) == set())
