# SPDX-License-Identifier: BSD-2-Clause
"""The directory of a guest: its lock says whether the guest has a process."""

import os
import socket

from moorage.node.hypervisors.base import GuestSpec
from moorage.node.hypervisors.kvm.home import Home
from moorage.node.hypervisors.kvm.sockets import listener, short_path
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
