# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a scratch cluster is found, whatever its directory is called."""

import shutil
import subprocess
from pathlib import Path

import pytest

from moorage.daemons import cleanup, devcluster, process
from moorage.daemons.cleanup import _names

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
