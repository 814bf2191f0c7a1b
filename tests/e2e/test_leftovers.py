# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a scratch cluster is found, whatever its directory is called."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moorage.daemons import cleanup, devcluster, process
from moorage.daemons.cleanup import _names
from moorage.daemons.master_process import stop

SCRIPT = str(Path(sys.executable).parent / "moorage")
MODULE = ("-m", "moorage.cli.moorage")
PIPE = {"stdin": subprocess.PIPE}


@pytest.mark.parametrize("root", ["/tmp/c", "/tmp/a,b", "/tmp/a=b", '/tmp/a,b="c d'])
def test_a_path_is_found_in_a_command_line(root) -> None:
    doubled = root.replace(",", ",,")
    for argv in (
        f"python\0-m\0moorage.daemons\0{root}/node1",
        f"qemu-system-x86_64\0-chardev\0socket,path={doubled}/node1/run/x,id=a",
        f"qemu-system-x86_64\0-incoming\0unix:{root}/node1/run/y",
    ):
        assert _names(argv, root, ""), argv
        assert _names(argv, root, "/node1"), argv
        assert not _names(argv, root, "/node"), argv
        assert not _names(argv, root, "/node2"), argv
        assert not _names(argv, f"{root}x", ""), argv
        assert not _names(argv, root[:-1], ""), argv


def test_a_node_is_not_another_whose_name_begins_alike() -> None:
    argv = "python\0/tmp/c/node10"
    assert _names(argv, "/tmp/c", "/node10")
    assert not _names(argv, "/tmp/c", "/node1")


@pytest.mark.slow
def test_a_cluster_in_a_directory_of_any_name_is_ended(tmp_path: Path) -> None:
    root = tmp_path / "a,b=c"
    devcluster.up(root, nodes=1, hypervisor="sim")
    try:
        assert list(cleanup.processes(root))
    finally:
        devcluster.down(root)
    assert not list(cleanup.processes(root))
    assert not root.exists()


def test_a_guest_is_found_by_the_directory_that_it_works_in(tmp_path: Path) -> None:
    """QEMU is told descriptors, and no path of the cluster's."""
    home = tmp_path / "c" / "node1" / "run" / "kvm" / "some-uuid"
    home.mkdir(parents=True)
    for name, expected in (("qemu-system-x86_64", True), ("python3", False)):
        one = subprocess.Popen([name], executable=shutil.which("cat"), **PIPE, cwd=home)
        try:
            line = Path(f"/proc/{one.pid}/cmdline")
            assert process.wait_until(lambda line=line: line.read_bytes(), 10)
            found = list(cleanup.processes(tmp_path / "c", "/node1"))
            assert (one.pid in found) is expected
            assert one.pid not in cleanup.processes(tmp_path / "c", "/node2")
        finally:
            one.communicate()


@contextmanager
def begun(*argv: str, cwd: Path) -> Iterator[subprocess.Popen]:
    """Start a program that waits; end it when the test is over."""
    with subprocess.Popen(argv, cwd=cwd, stdout=subprocess.PIPE) as one:
        try:
            assert one.stdout.readline() == b"up\n"
            yield one
        finally:
            one.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "below"),
    [
        ((sys.executable, *MODULE, "agent", "c/node1"), "."),
        ((sys.executable, "-u", "-I", SCRIPT, "agent", "./node1/"), "c"),
        ((SCRIPT, "agent", "../../c/node1"), "c/node1"),
        ((SCRIPT, "agent", "link/node1"), "."),
    ],
)
def test_an_agent_that_was_told_a_relative_directory_is_ended(
    tmp_path: Path, argv: tuple[str, ...], below: str
) -> None:
    root = tmp_path / "c"
    (tmp_path / "link").symlink_to(root)
    scratch = devcluster.up(root, nodes=1, hypervisor="sim")
    places = scratch.node("node1")
    try:
        process.end(process.running(places.pid, "agent") or 0)
        with subprocess.Popen(argv, cwd=tmp_path / below) as again:
            try:
                assert process.wait_until(places.serving.exists, 60)
                assert list(cleanup.processes(root, "/node1")) == [again.pid]
                assert again.pid not in cleanup.processes(root, "/node2")
                assert again.pid not in cleanup.processes(tmp_path / "other")
            finally:
                devcluster.down(root)
                ended = process.wait_until(lambda: again.poll() is not None, 10)
                again.kill()
        assert ended
    finally:
        if root.exists():
            devcluster.down(root)


@pytest.mark.slow
def test_a_master_that_was_told_a_relative_directory_is_ended(tmp_path: Path) -> None:
    root = tmp_path / "c"
    scratch = devcluster.up(root, nodes=1, hypervisor="sim")
    try:
        stop(scratch.master)
        words = ("master", "start", "--dir", "master")
        environ = os.environ | {"MOORAGE_SOCKET": str(root / "master" / "luxi.sock")}
        subprocess.run((SCRIPT, *words), cwd=root, env=environ, check=True)
        pids = [
            process.holder(lock)
            for lock in (scratch.master.supervisor, scratch.master.lock)
        ]
        assert all(pids)
        assert not set(pids) & set(cleanup.processes(root, "/node1"))
    finally:
        devcluster.down(root)
    assert not any(map(process.alive, pids))


@pytest.mark.slow
def test_a_second_agent_of_a_node_is_refused(tmp_path: Path) -> None:
    root, before = tmp_path / "c", dict(os.environ)
    devcluster.up(root, nodes=1, hypervisor="sim")
    assert os.environ == before  # whoever made it may look at another one now
    try:
        argv = (SCRIPT, "agent", "node1")
        again = subprocess.run(argv, cwd=root, capture_output=True, check=False)
        assert again.returncode == 1
        assert f"an agent serves {root}/node1 already".encode() in again.stderr
        assert len(list(cleanup.processes(root, "/node1"))) == 1
    finally:
        devcluster.down(root)


IDLE = "import time; print('up', flush=True); time.sleep(60)"


@pytest.mark.parametrize(
    "words",
    [
        ("agent", "node1"),
        ("moorage", "agent", "node1"),
        ("moorage.cli.moorage", "agent", "node1"),
        ("-m", "moorage.cli.moorage", "agent", "node1"),
    ],
)
@pytest.mark.parametrize("script", [False, True])
def test_a_program_that_stands_in_the_directory_is_left_alone(
    tmp_path: Path, words: tuple[str, ...], script: bool
) -> None:
    """It may be anybody's, whatever it is told: only our own program is an agent."""
    root = tmp_path / "c"
    (root / "node1").mkdir(parents=True)
    (tmp_path / "idle.py").write_text(IDLE)
    how = (str(tmp_path / "idle.py"),) if script else ("-c", IDLE)
    with begun(sys.executable, *how, *words, cwd=root) as one:
        assert one.pid not in cleanup.processes(root)
