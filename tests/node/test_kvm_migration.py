# SPDX-License-Identifier: BSD-2-Clause
"""A guest whose migration failed runs again, whatever QEMU says of it meanwhile."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from msgspec import convert

from moorage.node.hypervisors.kvm import migration
from moorage.node.hypervisors.kvm.monitor import Monitor


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
