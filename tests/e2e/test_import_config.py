# SPDX-License-Identifier: BSD-2-Clause
"""A cluster of Ganeti's comes in, typed on the master, and goes out again."""

import io
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ganetis_files import Ganeti
from moorage.cli.tour.typist import Typist
from moorage.config_data import NEWEST, Document, read, upgrade
from moorage.daemons import process
from moorage.daemons.devcluster import Scratch

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
NODES = ("node1", "node2", "node3")
WORDS = ("import-config", "--yes", "--guests-are-down")


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 3 --hypervisor sim")


@pytest.fixture
def hands(town: Scratch) -> Typist:
    return Typist(town.environment(), io.StringIO())


def recorded(ganeti: Ganeti, version: str) -> Document:
    """Return a recorded configuration whose nodes are called as the scratch ones."""
    data = ganeti.recorded(version).decode()
    names = sorted(one["name"] for one in json.loads(data)["nodes"].values())
    for old, new in zip(names, NODES, strict=True):
        data = data.replace(f'"{old}"', f'"{new}"')
    found: Document = json.loads(data)
    return found


@pytest.fixture
def file(ganeti: Ganeti, tmp_path: Path) -> Path:
    found = tmp_path / "config.data"
    found.write_text(json.dumps(recorded(ganeti, "2.16")))
    return found


def comparable(document: Document) -> Any:
    """Leave out where nodes are reached here, and the moment of writing."""
    for node in document["nodes"].values():
        node.pop("primary_ip")
        node.pop("secondary_ip")
    for key in ("serial_no", "mtime"):
        document.pop(key)
    return document


@pytest.mark.requirement("S3-16")
def test_a_recorded_cluster_comes_in_and_goes_out(
    town: Scratch, hands: Typist, ganeti: Ganeti, tmp_path: Path
) -> None:
    """Of the row: the last version with disks inside instances; the others in memory.

    It has uuids already, so what goes out is what came in, key by key.
    """
    directory = tmp_path / "ganeti"
    (directory / "queue").mkdir(parents=True)
    (directory / "queue" / "serial").write_text("4711\n")
    file = directory / "config.data"
    document = recorded(ganeti, "2.12")
    file.write_text(json.dumps(document))
    line = f"moorage import-config --from-dir {directory} {file}"
    assert "Nothing was changed" in hands.refused(f"{line} --yes")
    told = typed(town, "import-config", "--dry-run", str(file)).stdout
    assert "instance instance1.example.com: it is marked up" in told
    assert hands.ask("gnt-instance list -o name") == []
    told = hands.type(f"{line} --yes --guests-are-down")
    assert "node node2: master candidate at 127." in told
    assert "no OS 'busybox' on every node" in told
    rows = hands.ask("gnt-instance list -o name,pnode,disk_template,hypervisor")
    assert {one["name"]: one["disk_template"] for one in rows} == {
        "instance1.example.com": "drbd",
        "instance2.example.com": "plain",
        "instance3.example.com": "plain",
    }
    assert {one["hypervisor"] for one in rows} == {"xen-pvm"}
    assert roles(hands) == {"node1": "M", "node2": "C", "node3": "C"}
    assert "No problem found" in hands.type("moorage master check")
    hands.type("gnt-group add rack2")
    jobs = hands.ask("gnt-job list -o id,summary")
    (number,) = [one["id"] for one in jobs if "rack2" in str(one["summary"])]
    assert number > 4711
    hands.type("gnt-group remove rack2")
    out = tmp_path / "out.data"
    hands.type(f"moorage export-config {out}")
    numbers = count()
    brought_up, _ = upgrade(
        read(file.read_bytes()), NEWEST, lambda: f"new-{next(numbers)}"
    )
    ours = json.loads(out.read_bytes())
    assert comparable(ours) == comparable(brought_up)


def test_what_stands_in_the_way_is_told_and_nothing_is_changed(
    town: Scratch, hands: Typist, file: Path
) -> None:
    hands.type("gnt-disk add --size 1m -t sharedfile --name mine")
    before = hands.ask("gnt-node list -o name,uuid")
    document = json.loads(file.read_text())
    (gone,) = [key for key, one in document["nodes"].items() if one["name"] == "node3"]
    document["nodes"][gone]["name"] = "elsewhere"
    file.write_text(json.dumps(document))
    with running("ganeti-wconfd"):
        done = typed(town, *WORDS, "--json", str(file))
    assert done.returncode == 1
    plan = json.loads(done.stdout)
    told = defaultdict[str, list[str]](list)
    for one in plan["findings"]:
        told[one["object"]].append(one["message"])
    daemon = "ganeti-wconfd of Ganeti's runs here: stop it, on every node"
    assert daemon in told["machine"]
    assert "it has 1 disk already: mine" in told["cluster"]
    assert "not in the file: gnt-node remove node3" in " ".join(told["node node3"])
    assert told["node elsewhere"] == ["no node of this name has joined: it is offline"]
    assert hands.ask("gnt-node list -o name,uuid") == before
    hands.type("gnt-disk remove -f mine")
    hands.type("gnt-node modify -C no node3")
    hands.type("gnt-node remove node3")
    hands.type("gnt-debug delay --submit 600")
    (number,) = (one["id"] for one in hands.ask("gnt-job list --running -o id"))
    told = hands.refused(f"moorage {' '.join(WORDS)} {file}")
    assert f"jobs are under way, job {number} among them" in told
    hands.type(f"gnt-job cancel {number}")
    hands.refused(f"gnt-job wait {number}")
    with process.held(town.master.importing, "somebody else was faster"):
        told = hands.refused(f"moorage {' '.join(WORDS)} {file}")
    assert "another import into" in told
    hands.type(f"moorage {' '.join(WORDS)} {file}")
    assert roles(hands) == {"node1": "M", "node2": "C", "elsewhere": "O"}


def test_no_file_of_ganetis_is_no_cluster(hands: Typist, tmp_path: Path) -> None:
    for name, content in (("cut", b'{"version": 2160000'), ("other", b"[]")):
        file = tmp_path / name
        file.write_bytes(content)
        assert "it is no" in hands.refused(f"moorage {' '.join(WORDS)} {file}")
    missing = hands.refused(f"moorage {' '.join(WORDS)} {tmp_path}/none")
    assert f"{tmp_path}/none: No such file or directory" in missing


def test_who_is_killed_in_the_middle_leaves_the_old_or_the_new(
    town: Scratch, hands: Typist, file: Path
) -> None:
    """At three moments of an import, with a master that runs; it can be typed again.

    While one is under way, another one ends neither it nor the master.
    """
    started = time.monotonic()
    with process.held(town.master.importing, "the test holds it"):
        told = hands.refused(f"moorage {' '.join(WORDS)} {file}")
    assert f"another import into {town.master.root} is under way" in told
    assert process.holder(town.master.lock)
    whole = time.monotonic() - started
    seen = set[bool]()
    for part in (0.8, 1.2, 1.6):
        one = subprocess.Popen(
            command(*WORDS, str(file)),
            env=town.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(whole * part)
        one.kill()
        one.wait()
        typed(town, "master", "start")
        assert "No problem found" in hands.type("moorage master check")
        names = {one["name"] for one in hands.ask("gnt-instance list -o name")}
        assert names in (set(), {f"instance{n}.example.com" for n in (1, 2, 3)})
        seen.add(bool(names))
        if names:
            break
    if True not in seen:
        hands.type(f"moorage {' '.join(WORDS)} {file}")
    assert len(hands.ask("gnt-instance list -o name")) == 3
    assert process.holder(town.master.lock)


def roles(hands: Typist) -> dict[str, str]:
    rows = hands.ask("gnt-node list -o name,role")
    return {one["name"]: one["role"] for one in rows}


def command(*words: str) -> list[str]:
    return [str(Path(sys.executable).parent / "moorage"), *words]


def typed(town: Scratch, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        env=town.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@contextmanager
def running(name: str) -> Iterator[None]:
    """Let a program run that is called as a daemon of Ganeti's."""
    line = ["bash", "-c", f"exec -a {name} sleep 600"]
    with subprocess.Popen(line, start_new_session=True) as one:
        try:
            seen = Path(f"/proc/{one.pid}/cmdline")
            assert process.wait_until(lambda: name.encode() in seen.read_bytes(), 30)
            yield
        finally:
            one.kill()
