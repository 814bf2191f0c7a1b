# SPDX-License-Identifier: BSD-2-Clause
"""A guest whose migration failed runs again, whatever QEMU says of it meanwhile.

And one whose migration did not fail does not.
"""

import errno
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import convert

from moorage.errors import Failed, WrongState
from moorage.model import GuestState
from moorage.node.hypervisors.kvm import (
    arrival,
    guest_state,
    migration,
    power,
    wakeup,
)
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.monitor import Monitor
from moorage.node.hypervisors.kvm.shapes import Migration
from moorage.protocol import Door
from moorage.units import Mib


class Qemu:
    """Says one status after the other, and what is asked of it."""

    def __init__(self, migration: str, *statuses: str) -> None:
        self._migration, self._statuses = migration, list(statuses)
        self.asked: list[str] = []

    async def read(self, kind: type[Any], command: str) -> Any:
        if command == "query-migrate":
            return convert({"status": self._migration}, kind)
        now = self._statuses[0]
        if len(self._statuses) > 1:
            del self._statuses[0]
        return convert({"status": now}, kind)

    async def ask(self, command: str) -> None:
        self.asked.append(command)


@pytest.mark.parametrize(
    ("qemu", "asked"),
    [
        (Qemu("failed", "finish-migrate", "finish-migrate", "postmigrate"), ["cont"]),
        (Qemu("failed", "finish-migrate", "running"), []),
        (Qemu("failed", "paused"), ["cont"]),
        (Qemu("active", "paused"), []),
        (Qemu("active", "finish-migrate"), []),
        (Qemu("completed", "finish-migrate", "postmigrate"), []),
    ],
)
async def test_a_guest_that_stood_still_for_it_goes_on(
    qemu: Qemu, asked: list[str]
) -> None:
    await migration.run_again(cast("Monitor", qemu))
    assert qemu.asked == asked


async def test_a_guest_that_is_still_arriving_is_waited_for() -> None:
    """On a busy machine the destination reads on when the source has done: told to
    run too early, the guest stood still for good."""
    qemu = Arriving("inmigrate", "inmigrate", "paused")

    @asynccontextmanager
    async def talk() -> AsyncIterator[Monitor]:
        yield cast("Monitor", qemu)

    await migration.go_on(talk)
    assert qemu.asked == ["cont"]


class Arriving(Qemu):
    """One that a guest comes to: the migration is under way until it is there."""

    def __init__(self, *statuses: str) -> None:
        super().__init__("active", *statuses)

    async def read(self, kind: type[Any], command: str) -> Any:
        if self._statuses[0] == "paused":
            self._migration = "completed"
        return await super().read(kind, command)


# -- what changes between two questions ------------------------------------------------


class Script:
    """Answers questions about a migration one after the other; the last answer stays.

    Parameters
    ----------
    told
        In this order: what QEMU says of the guest, and of its migration.
    """

    guest = "web"

    def __init__(self, *told: tuple[str, dict[str, Any] | str]) -> None:
        self._told = list(told)
        self.asked: list[str] = []

    async def read(self, kind: type[Any], command: str) -> Any:
        said, migrates = self._told[0]
        if len(self._told) > 1:
            del self._told[0]
        more = migrates if isinstance(migrates, dict) else {"status": migrates}
        return convert({"status": said} if command == "query-status" else more, kind)

    async def ask(self, command: str, **arguments: Any) -> Any:
        self.asked.append(f"{command} {arguments}" if arguments else command)

    def talk(self) -> AbstractAsyncContextManager[Monitor]:
        @asynccontextmanager
        async def one() -> AsyncIterator[Monitor]:
            yield cast("Monitor", self)

        return one()


ENDS = ("paused", "active"), ("postmigrate", "completed")
"""It stood still and went; and then it has gone."""


async def test_one_that_completes_between_two_questions_does_not_run_again() -> None:
    """It was seen to stand still, and then no migration was under way any more."""
    for at in range(3):
        qemu = Script(*(ENDS[:1] * at), ENDS[1])
        await migration.run_again(cast("Monitor", qemu))
        assert qemu.asked == []


@pytest.mark.parametrize("early", range(4))
async def test_one_that_has_just_gone_is_not_taken_for_one_that_stands_still(
    early: int,
) -> None:
    qemu = Script(*(ENDS[:1] * early), ENDS[1])
    found = await guest_state.state(cast("Monitor", qemu))
    assert found == ("moved" if early < 2 else "running")
    gone = Script(("finish-migrate", "completed"))
    assert await guest_state.state(cast("Monitor", gone)) == "moved"


@pytest.mark.parametrize(
    ("said", "migrates"),
    [("postmigrate", "completed"), ("paused", "active"), ("inmigrate", "none")],
)
async def test_one_that_is_not_here_for_good_is_not_reset(
    said: str, migrates: str
) -> None:
    """Reset, QEMU says of one that has moved that it only waits to be started."""
    qemu = Script((said, migrates))
    with pytest.raises(Failed, match="cannot be reset"):
        await power.reset(qemu.talk)
    assert qemu.asked == []


async def test_one_that_stands_still_runs_when_it_is_reset() -> None:
    qemu = Script(*[("guest-panicked", "none")] * 2, ("prelaunch", "failed"))
    await power.reset(qemu.talk)
    assert qemu.asked == ["system_reset", "cont"]


async def test_one_that_would_end_is_not_reset() -> None:
    """It was to run again, and was down."""
    qemu = Script(("running", "none"))
    with pytest.raises(WrongState, match="reboot_behavior=exit"):
        await power.reset(qemu.talk, exits=True)
    assert qemu.asked == []


async def test_one_that_waits_for_room_is_not_woken_while_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have gone before it hears of it."""
    qemu = Script(("io-error", "active"))
    monkeypatch.setattr(wakeup, "conversation", lambda _: qemu.talk())
    still = GuestState(
        uuid="g1", name="web", state="paused", cause="io-error", memory=Mib(1), vcpus=1
    )
    await wakeup.wake(Home(tmp_path, "g1"), still)
    assert qemu.asked == []


# -- giving up -------------------------------------------------------------------------


async def test_giving_up_breaks_the_connection_and_lets_qemu_tell() -> None:
    """It is not cancelled: that would not ask whether all has been sent."""
    qemu = Script(*[("finish-migrate", "active")] * 4, ENDS[1])
    with pytest.raises(Failed, match="has moved"):
        await migration.give_up(qemu.talk)
    slow, broken = qemu.asked
    assert "max_bandwidth" in slow
    assert broken.startswith("yank")


async def test_what_has_not_begun_to_send_is_cancelled() -> None:
    qemu = Script(*[("running", "setup")] * 3, ("running", "cancelled"))
    await migration.give_up(qemu.talk)
    assert qemu.asked[1:] == ["migrate_cancel"]


async def test_who_waits_for_a_guest_does_not_give_it_up() -> None:
    qemu = Script(("inmigrate", "active"))
    with pytest.raises(Failed, match="only waits"):
        await migration.give_up(qemu.talk)
    assert qemu.asked == []


# -- figures ---------------------------------------------------------------------------


async def test_figures_that_are_not_there_yet_are_asked_for_again(
    tmp_path: Path,
) -> None:
    early = {"status": "completed"}
    qemu = Script(
        *[("postmigrate", early)] * 3,
        ("postmigrate", early | {"total-time": 812, "downtime": 31}),
    )
    door = Door(port=1, key="ab" * 32)
    home, given = Home(tmp_path, "g1"), cast("Any", None)
    way = migration.Way(home, "127.0.0.1", door, given)
    first = await qemu.read(Migration, "query-migrate")
    moved = await migration._result(qemu.talk, first, way)
    assert (moved.total_ms, moved.downtime_ms) == (812, 31)


def test_how_long_it_took_is_noted_when_it_is_first_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks later, the next agent too, tells the same."""
    now = iter((100.0, 101.5, 200.0))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    home = Home(tmp_path, "g1")
    home.path.mkdir()
    assert arrival.took(home) is None
    arrival.begin(home)
    assert arrival.took(home) == 1500
    assert arrival.took(Home(tmp_path, "g1")) == 1500


def test_a_full_disk_keeps_no_guest_from_being_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is routed to, and recorded, by whoever sees it; the figure matters less."""
    now = iter((100.0, 101.5, 102.5))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    home = Home(tmp_path, "g1")
    home.path.mkdir()
    arrival.begin(home)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Home, "write", full)
    assert [arrival.took(home), arrival.took(home)] == [1500, 2500]
