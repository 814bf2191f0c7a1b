# SPDX-License-Identifier: BSD-2-Clause
"""Real guests that end in each of the ways there are, and what the watcher makes of it.

A guest powers itself off, one is killed, one is shut down, and the agent's node
"reboots": its guests are gone, and the agent starts anew.
"""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.daemons import devcluster, process

pytestmark = pytest.mark.real

PATIENCE = 120.0


@pytest.fixture
def square(town: Any) -> Iterator[Any]:
    """Return the town with three guests on node1, and nothing of them afterwards."""
    names = ("web1", "web2", "web3")
    for name in names:
        town.guest(name, "node1")
    for name in names:
        town.inside(name, "true")
    yield town
    town.type("gnt-cluster modify --user-shutdown no")
    for name in names:
        town.type(f"gnt-instance remove -f --shutdown-timeout 0 {name}")
    assert town.healthy()


def statuses(town: Any) -> dict[str, str]:
    rows = town.ask("gnt-instance list -o name,status")
    return {row["name"]: row["status"] for row in rows}


def pid(town: Any, name: str) -> int:
    (row,) = town.ask(f"gnt-instance list -o uuid,pnode {name}")
    found = town.kvm(row["pnode"])._home(row["uuid"]).pid()
    assert found
    return int(found)


def kill(town: Any, name: str) -> None:
    one = pid(town, name)
    os.kill(one, signal.SIGKILL)
    assert process.wait_until(lambda: not process.alive(one), PATIENCE)


def power_off(town: Any, name: str) -> None:
    """Let a guest power itself off, and wait until its process is gone."""
    one = pid(town, name)
    town.inside(name, "(usleep 200000; poweroff -f) >/dev/null 2>&1 &")
    assert process.wait_until(lambda: not process.alive(one), PATIENCE)


def test_each_guest_comes_back_as_it_should(square: Any) -> None:
    town = square
    town.type("gnt-cluster modify --user-shutdown yes")
    town.type("gnt-instance modify -H user_shutdown=true web1")
    town.type("gnt-instance shutdown --timeout 60 --no-remember web3")
    power_off(town, "web1")
    kill(town, "web2")
    assert statuses(town) == {
        "web1": "USER_down",
        "web2": "ERROR_down",
        "web3": "ERROR_down",  # its button was pressed: that was not the guest's will
    }
    town.type("moorage watcher")
    assert statuses(town) == {
        "web1": "USER_down",
        "web2": "running",
        "web3": "running",
    }
    (row,) = town.ask("gnt-instance list -o admin_state,admin_state_source web1")
    assert (row["admin_state"], row["admin_state_source"]) == ("down", "user")
    town.type("gnt-instance startup web1")
    kill(town, "web1")  # what it did in an earlier life does not count
    assert statuses(town)["web1"] == "ERROR_down"
    _reboot(town)
    assert set(statuses(town).values()) == {"ERROR_down"}
    town.type("moorage watcher")
    assert set(statuses(town).values()) == {"running"}


def _reboot(town: Any) -> None:
    """Let node1 lose its guests and its agent, and start the agent again."""
    for name, status in statuses(town).items():
        if status == "running":
            kill(town, name)
    agent = int(town.scratch.node("node1").pid.read_text().split()[0])
    os.kill(agent, signal.SIGKILL)
    assert process.wait_until(lambda: not process.alive(agent), PATIENCE)
    devcluster.start_agent(town.scratch, "node1")
