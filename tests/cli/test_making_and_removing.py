# SPDX-License-Identifier: BSD-2-Clause
"""Disks and instances made and removed by command, on a master with simulated nodes."""

import asyncio
import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.testing.cluster import ClusterBuilder, SimCluster


class Quay:
    """A cluster that a thread serves, and how to type at it."""

    def __init__(self, typed: Callable[..., Any], directory: Path) -> None:
        self.cluster: SimCluster
        self._typed = typed
        self._directory = directory
        self._ready, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        builder = ClusterBuilder().disk("root").disk("data1", last_node="node3")
        builder.instance("web1", "node1", ("root",)).instance("web2", "node3")
        self.cluster = await SimCluster.start(self._directory / "nodes", builder)
        seconds = count(2000)
        self.cluster.clock = lambda: float(next(seconds))
        for name in ("root", "data1"):
            volume = {"size": 1024, "provider": "san", "data": ""}
            self.cluster.nodes.san.volumes[f"vol-{name}"] = volume
        sources = Sources(
            self.cluster.config_store, self.cluster.nodes, self.cluster.engine
        )
        server = LuxiServer(sources, self._directory / "luxi.sock")
        await server.start()
        self._ready.set()
        await asyncio.to_thread(self._done.wait)
        await server.stop()
        await self.cluster.stop()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(30)

    def stop(self) -> None:
        self._done.set()
        self._thread.join(30)

    def tries(self, line: str, answer: str | None = None) -> Any:
        """Type a line, at a terminal if there is an answer; return the screens."""
        environ = {"MOORAGE_SOCKET": f"{self._directory}/luxi.sock"}
        return self._typed(line, answer, **environ)

    def types(self, line: str, answer: str | None = None) -> str:
        """Type a line that works; return what it prints."""
        screen = self.tries(line, answer)
        assert screen.status == 0, screen.err
        return str(screen.out)

    def refused(self, line: str) -> str:
        """Type a line that is refused; return why."""
        screen = self.tries(line)
        assert screen.status == 1
        return str(screen.err)

    def rows(self, line: str) -> list[dict[str, Any]]:
        """Return the rows of a list."""
        found: list[dict[str, Any]] = json.loads(self.types(f"{line} --json"))
        return found

    def names(self) -> list[str]:
        return [row["name"] for row in self.rows("gnt-disk list -o name")]


@pytest.fixture
def quay(typed: Any) -> Iterator[Quay]:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "nodes").mkdir()
        found = Quay(typed, Path(directory))
        found.start()
        yield found
        found.stop()


@pytest.mark.requirement("S3-26")
def test_the_old_line_adds_a_disk_like_the_others(quay: Quay) -> None:
    """Part of the row: the command line; one template, disks that stay attached."""
    quay.types("gnt-instance modify --disk add:size=1G web1")
    quay.types("gnt-instance modify --disk -1:add,size=2G,name=third web1")
    fields = "name,dev_type,provider,size,instance"
    rows = quay.rows(f"gnt-disk list -o {fields}")
    made = [row for row in rows if row["instance"] == "web1" and row["name"] != "root"]
    assert sorted((r["dev_type"], r["provider"], r["size"]) for r in made) == [
        ("ext", "san", 1024),
        ("ext", "san", 2048),
    ]
    quay.types("gnt-instance modify --disk 1:modify,mode=ro web1")
    quay.types("gnt-instance grow-disk web1 2 1G")
    quay.types("gnt-instance modify --disk remove web1")
    quay.types("gnt-instance modify --disk -1:remove web1")
    (row,) = quay.rows("gnt-instance list -o disk.count,disk_template web1")
    assert row == {"disk.count": 1, "disk_template": "ext"}
    said = quay.refused("gnt-instance modify --disk add:size=1G web2")
    assert "the disk names no template" in said
    assert "dev_type=" in said
    quay.types("gnt-instance modify --disk add:size=1G,dev_type=sharedfile web2")


@pytest.mark.requirement("S3-07")
def test_every_change_of_a_disk_moves_its_serial_number_and_its_time(
    quay: Quay,
) -> None:
    def state() -> tuple[int, float]:
        (row,) = quay.rows("gnt-disk list -o serial_no,mtime,ctime data1")
        assert row["ctime"] == 0.0
        return row["serial_no"], row["mtime"]

    before = state()
    for line in (
        "gnt-disk modify --mode ro data1",
        "gnt-disk modify -D tier=ssd data1",
        "gnt-disk rename data1 data2",
        "gnt-disk rename data2 data1",
        "gnt-disk grow data1 1G",
        "gnt-disk attach data1 web1",
        "gnt-instance grow-disk web1 1 1G",
        "gnt-instance modify --disk 1:modify,mode=rw web1",
        "gnt-disk detach data1",
    ):
        quay.types(line)
        after = state()
        assert after[0] == before[0] + 1, line
        assert after[1] > before[1], line
        before = after


def test_a_removal_of_a_disk_asks_at_a_terminal(quay: Quay) -> None:
    quay.types("gnt-disk attach data1 web1")
    screen = quay.tries("gnt-instance modify --disk 1:remove web1", "n\n")
    assert screen.status == 1
    assert "This will remove disk 1 of web1 and all its data. Continue?" in screen.err
    screen = quay.tries("gnt-instance modify --disk remove web1", "\n")
    assert "This will remove the last disk of web1" in screen.err
    assert quay.names() == ["data1", "root"]
    quay.types("gnt-instance modify --disk 1:remove web1", "y\n")
    assert quay.names() == ["root"]


@pytest.mark.parametrize(
    ("option", "answer"), [("-f", ""), ("--yes", ""), ("", None), ("--dry-run", "")]
)
def test_nobody_is_asked_who_said_so_or_is_not_there(
    quay: Quay, option: str, answer: str | None
) -> None:
    screen = quay.tries(f"gnt-instance modify {option} --disk root:remove web1", answer)
    assert screen.status == 0
    assert "Continue?" not in screen.err


@pytest.mark.requirement("S3-46")
def test_names_that_mean_something_else(quay: Quay) -> None:
    add = "gnt-disk add -t ext -p san -s 1G"
    assert "a disk named 'data1' exists already" in quay.refused(f"{add} data1")
    assert "numbers are slots" in quay.refused(f"{add} 3")
    assert "a disk named 'root'" in quay.refused("gnt-disk rename data1 root")
    assert "numbers are slots" in quay.refused("gnt-disk rename data1 0")
    uuid = "4f2c1b7e-0000-4000-8000-000000000001"
    assert "looks like a uuid" in quay.refused(f"gnt-disk rename data1 {uuid}")
    said = quay.refused("gnt-disk snapshot --name root data1")
    assert "a disk named 'root' exists already" in said
    said = quay.refused("gnt-instance modify --disk attach,uuid=data9 web1")
    assert "no disk has the uuid 'data9'" in said
    assert quay.names() == ["data1", "root"]


@pytest.mark.requirement("S0-62")
def test_a_parameter_that_is_not_listed_can_be_forced(quay: Quay) -> None:
    for line in (
        "gnt-disk add {} -t ext -p san -s 1G -D vg=fast new",
        "gnt-disk modify {} -D vg=fast data1",
        "gnt-instance modify {} --disk 0:modify,vg=fast web1",
        "gnt-instance modify {} --disk add:size=1G,vg=fast web1",
        "gnt-instance add {} -t ext --disk 0:size=1G,provider=san,vg=fast --no-nics w3",
    ):
        said = quay.refused(line.format(""))
        assert "ExtStorage provider 'san' has no parameter 'vg': it takes tier" in said
        assert "hint: --force-params" in said
        quay.types(line.format("--force-params"))
    rows = quay.rows("gnt-disk list -o params")
    assert all(row["params"] == {"provider": "san", "vg": "fast"} for row in rows)


def test_what_is_lost_can_be_let_go(quay: Quay) -> None:
    new = "--disk 0:size=1G,dev_type=file,name=local --disk 1:size=1G,dev_type=ext"
    quay.types(f"gnt-instance add {new},provider=san,name=far -n node3 web3")
    quay.cluster.nodes.nodes["node3"].lose_power()
    quay.types("gnt-node modify --offline yes node3")
    assert "--ignore-failures web3" in quay.refused("gnt-instance remove -f web3")
    screen = quay.tries("gnt-instance remove -f --ignore-failures web3")
    assert screen.status == 0, screen.err
    assert "Warning: disk local stays behind" in screen.out
    assert "its data is on node3, marked offline" in screen.out
    assert quay.names() == ["data1", "local", "root"]
    assert "gnt-disk forget --reason" in quay.refused("gnt-disk remove -f local")
    assert "hint: gnt-disk forget --reason" in quay.refused("gnt-disk forget -f local")
    why = "gnt-disk forget --reason 'node3 burnt' local"
    assert quay.tries(why, "n\n").status == 1
    assert quay.types(why, "y\n").endswith("Forgot disk local\n")
    assert quay.names() == ["data1", "root"]
    number = quay.rows("gnt-job list")[-1]["id"]
    assert "node3 burnt" in quay.types(f"gnt-job info {number}")
    quay.types("gnt-instance remove -f --ignore-failures web2")
    quay.types("gnt-node remove node3")


def test_a_task_that_was_not_done_is_not_shown_as_done(quay: Quay) -> None:
    node = quay.cluster.nodes.nodes["node3"]
    node.machine.refuse = lambda _, command: command.argv[0].endswith("/remove")
    said = quay.refused("gnt-disk remove -f data1")
    assert "hint: if its data is gone for good: gnt-disk forget" in said
    number = quay.rows("gnt-job list")[-1]["id"]
    (job,) = yaml.safe_load(quay.types(f"gnt-job info {number}"))
    assert job["Opcodes"][0]["Tasks"] == [
        "detach disk data1 on node3 [node3] (done)",
        "remove disk data1 on node3 [node3] (failed)",
        "forget disk data1 [master] (left out)",
    ]
