# SPDX-License-Identifier: BSD-2-Clause
"""The audit log goes with the copies, and a master who rewrites it leaves a trace."""

from pathlib import Path

import pytest

from candidates import Town, follow, led, on_disk
from moorage.model.audit import Chain, Deed, decoded
from moorage.store import ConfigStore, SqliteStore, audit
from moorage.store.checksums import of_record


def lines(town: Town, name: str) -> list[bytes]:
    _, records = on_disk(town, name)
    found = {key: one for key, one in records.items() if key[0] == audit.KIND}
    return [found[key] for key in sorted(found)]


async def told(town: Town, number: int) -> None:
    for job in range(number):
        done = Deed(time=0.0, what="submit", user="anna", job=job + 1)
        await town.config_store.commit(None, deeds=[done])


def traces(town: Town, name: str) -> list[Path]:
    return sorted((town.directory / name / "audit").glob("*"))


async def test_each_candidate_has_the_entries_of_what_is_acknowledged(
    town: Town,
) -> None:
    await told(town, 3)
    for name in ("node2", "node3"):
        chain = Chain()
        assert list(chain.read(lines(town, name))) == []
        assert (chain.last, chain.head) == (3, town.config_store.audit.head)
        assert traces(town, name) == []


@pytest.mark.parametrize("cut", [True, False])
async def test_what_a_thief_on_the_master_rewrites_is_kept_elsewhere(
    town: Town, caplog: pytest.LogCaptureFixture, *, cut: bool
) -> None:
    await told(town, 3)
    before = lines(town, "node2")
    await town.stop()
    records, sums, last = town.store.records, town.store._sums, audit.key(3)
    value = records.pop(last).replace(b"anna", b"bert")
    sums.pop(last)
    if not cut:  # the chain fits, and all that the store knows of it
        records[last], sums[last] = value, of_record(last, value)
    again = await led(town.directory, town.nodes, town.store)
    await again.commit(1)
    await again.whole("node2", "node3")
    for name in ("node2", "node3"):
        (trace,) = traces(again, name)
        assert trace.read_bytes().splitlines() == before
    assert "does not have the audit log that was here" in caplog.text
    await again.stop()


async def test_a_commit_that_rewrites_an_entry_is_not_followed(town: Town) -> None:
    await told(town, 2)
    before = lines(town, "node2")
    await town.config_store.commit(None, [(audit.key(1), b"{}")])
    await town.whole("node2", "node3")
    for name in ("node2", "node3"):
        (trace,) = traces(town, name)
        assert trace.read_bytes().splitlines() == before


async def test_a_commit_that_drops_what_would_be_kept_is_not_followed(
    town: Town,
) -> None:
    await told(town, 3)
    before = lines(town, "node2")
    gone = [(audit.key(number), None) for number in (1, 2, 3)]
    await town.config_store.commit(None, gone)
    town.config_store.audit = audit.AuditLog()  # and a new chain from the first on
    await told(town, 1)
    await town.whole("node2", "node3")
    for name in ("node2", "node3"):
        (trace,) = traces(town, name)
        assert trace.read_bytes().splitlines() == before


async def test_a_whole_copy_without_the_older_entries_leaves_a_trace(
    town: Town,
) -> None:
    await told(town, 3)
    before = lines(town, "node2")
    await town.stop()
    for number in (1, 2):
        town.store.records.pop(audit.key(number))
        town.store._sums.pop(audit.key(number))
    again = await led(town.directory, town.nodes, town.store)
    await again.commit(1)
    await again.whole("node2", "node3")
    for name in ("node2", "node3"):
        (trace,) = traces(again, name)
        assert trace.read_bytes().splitlines() == before
    await again.stop()


async def test_a_copy_that_goes_on_leaves_no_trace(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "KEPT", 3)
    await told(town, 5)
    await town.stop()
    alone, _ = await ConfigStore.open(town.store)  # so that whole copies are sent
    await alone.commit(None, deeds=[Deed(time=0.0, what="drain")])
    again = await led(town.directory, town.nodes, town.store)
    await told(again, 5)
    await again.whole("node2", "node3")
    assert len(lines(again, "node2")) == 3
    assert traces(again, "node2") == []
    await again.stop()


async def test_the_next_master_goes_on_behind_the_last_entry(town: Town) -> None:
    await told(town, 3)
    await town.stop()
    await follow(town, "node2")
    store = SqliteStore(town.directory / "master-node2" / "state.sqlite")
    truth, _ = await ConfigStore.open(store)
    await truth.commit(None, deeds=[Deed(time=0.0, what="drain")])
    found = await truth.audited(0)
    await truth.close()
    assert list(Chain().read(found)) == []
    last = [decoded(one) for one in found[3:]]
    assert [(one.what, one.about) for one in last] == [("lead", "node2"), ("drain", "")]
    assert last[0].term > decoded(found[2]).term
