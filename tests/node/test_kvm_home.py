# SPDX-License-Identifier: BSD-2-Clause
"""The directory of a guest: its lock says whether the guest has a process."""

import os
import socket
import subprocess
import sys

from moorage.node.hypervisors.base import GuestSpec
from moorage.node.hypervisors.kvm.guest_dir import NOTE, Home
from moorage.node.machine.sockets import listener, short_path
from moorage.units import Mib

SPEC = GuestSpec(uuid="u", name="web", memory=Mib(64), hvparams={"acpi": True})


def test_who_holds_the_lock_is_a_process_of_the_guest(tmp_path):
    home = Home(tmp_path, "u")
    held = home.claim()
    home.write_spec(SPEC)
    assert home.has_process()
    assert Home(tmp_path, "u").claim() is None
    os.close(held)
    assert not home.has_process()
    assert not home.path.exists()


def test_what_the_guest_was_started_with_is_found_again(tmp_path):
    home = Home(tmp_path, "u")
    os.close(home.claim())
    home.write_spec(SPEC)
    assert Home(tmp_path, "u").spec() == SPEC


def test_a_lost_specification_leaves_a_name(tmp_path):
    home = Home(tmp_path, "u")
    assert home.spec().name == "u"
    assert home.pid() is None


def test_qemus_last_words_stay_when_the_guest_is_gone(tmp_path):
    home = Home(tmp_path, "u")
    os.close(home.claim())
    home.write_spec(SPEC)
    home.file("log").write_text("load of migration failed")
    assert not home.has_process()
    assert (tmp_path / "u.log").read_text() == "load of migration failed"


def test_a_directory_of_somebody_else_stays(tmp_path):
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "disk.json").write_text("{}")
    assert not Home(tmp_path, "held").has_process()
    assert (tmp_path / "held" / "disk.json").exists()


def test_sockets_work_at_paths_of_any_length(tmp_path):
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    path = deep / "monitor"
    with (
        listener(path) as server,
        socket.socket(socket.AF_UNIX) as client,
        short_path(path) as name,
    ):
        client.connect(name)
        server.accept()[0].close()


LETS_GO = (
    "import fcntl, sys; fcntl.flock(int(sys.argv[1]), 8);"
    "print(flush=True); sys.stdin.read()"
)


def test_a_process_that_lets_go_of_the_lock_is_a_process_all_the_same(tmp_path):
    """A guest that has taken its QEMU over cannot make it look gone."""
    home = Home(tmp_path, "u")
    held = home.claim()
    home.write_spec(SPEC)
    words = ["sh", "-c", f'{NOTE} && exec "$@"', "guest", sys.executable, "-c", LETS_GO]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(
        [*words, str(held)], **pipes, pass_fds=[held], cwd=home.path
    ) as qemu:
        os.close(held)
        qemu.stdout.readline()
        assert home.pid() == qemu.pid
        assert home.has_process()
        assert home.claim() is None
        qemu.kill()
    assert not home.has_process()
    assert not home.path.exists()


def test_another_process_of_that_number_is_not_the_guests(tmp_path):
    home = Home(tmp_path, "u")
    held = home.claim()
    home.write_spec(SPEC)
    home.write("pid", f"{os.getpid()} 1 another-run-of-the-machine")
    os.close(held)
    assert not home.has_process()
