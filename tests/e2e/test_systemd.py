# SPDX-License-Identifier: BSD-2-Clause
"""What a daemon tells systemd: that it is up, that it lives, that it ends."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from moorage.daemons import process
from moorage.daemons.agent import Settings, write_settings
from moorage.daemons.paths import NodePlaces
from moorage.daemons.state_directory import as_owner, claim, give
from moorage.errors import WrongState
from support.ports import free_port


@pytest.fixture
def systemd(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        yield listener


@pytest.fixture
def agent(tmp_path):
    places = NodePlaces(tmp_path / "node")
    here = Settings(address="127.0.0.1", port=free_port(), hypervisor="fake")
    write_settings(places, here)
    told = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
    argv = process.command("agent", str(places.root))
    with subprocess.Popen(argv, env=os.environ | told) as running:
        try:
            yield places, running
        finally:
            running.kill()


def test_an_agent_is_up_when_its_token_is_there_and_then_says_that_it_lives(
    systemd, agent
):
    places, running = agent
    assert systemd.recv(100) == b"READY=1"
    assert places.token.exists()
    assert [systemd.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3
    running.send_signal(signal.SIGTERM)
    while (said := systemd.recv(100)) == b"WATCHDOG=1":
        pass
    assert said == b"STOPPING=1"
    assert running.wait(60) == 0


def test_an_agent_that_stands_still_gives_no_sign_of_life(systemd, agent):
    _, running = agent
    assert systemd.recv(100) == b"READY=1"
    running.send_signal(signal.SIGSTOP)
    systemd.settimeout(1.0)
    with pytest.raises(TimeoutError):
        assert list(iter(lambda: systemd.recv(100), b""))


def who_am_i(word: str, *, refuse: bool = False) -> tuple[str, int, int]:
    if refuse:
        raise WrongState(word, hint="a hint")
    return word, os.geteuid(), os.getegid()


@pytest.mark.real
def test_root_works_on_a_users_directory_as_that_user(tmp_path):
    os.chown(tmp_path, 65534, 65534)
    assert as_owner(tmp_path, who_am_i, "x") == ("x", 65534, 65534)
    assert os.geteuid() == 0
    with pytest.raises(WrongState, match="not now") as caught:
        as_owner(tmp_path, who_am_i, "not now", refuse=True)
    assert caught.value.hint == "a hint"


def test_whoever_is_not_root_or_owns_it_works_as_themselves(tmp_path):
    me = ("x", os.geteuid(), os.getegid())
    assert as_owner(tmp_path, who_am_i, "x") == me
    assert as_owner(Path("/no/such/directory"), who_am_i, "x") == me


@pytest.mark.real
def test_a_directory_that_root_gave_to_a_daemon_may_be_filled_and_given(tmp_path):
    directory = tmp_path / "moorage"
    directory.mkdir(mode=0o700)
    os.chown(directory, 65534, 65534)
    with pytest.raises(WrongState, match="belongs to"):
        claim(directory, "a store")
    claim(directory, "a store", given=True)
    (directory / "keys").mkdir()
    give(directory / "keys")
    assert (directory / "keys").stat().st_uid == 65534
    directory.chmod(0o770)
    with pytest.raises(WrongState, match="belongs to"):
        claim(directory, "a store", given=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_a_link_leads_to_is_not_given(tmp_path):
    """The daemon's user may have put it there, and would have root's files then."""
    directory = tmp_path / "moorage"
    (directory / "keys").mkdir(parents=True)
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "shadow").touch()
    (directory / "link").symlink_to(tmp_path / "roots")
    (directory / "keys" / "deep").symlink_to(tmp_path / "roots")
    (directory / "keys" / "own").touch()
    with socket.socket(socket.AF_UNIX) as left:  # by a master that was killed
        left.bind(str(directory / "sock"))
    os.chown(directory, 65534, 65534)
    for one in directory.iterdir():
        give(one)
    assert (tmp_path / "roots").stat().st_uid == 0
    assert (tmp_path / "roots" / "shadow").stat().st_uid == 0
    assert (directory / "keys" / "own").stat().st_uid == 65534
    assert (directory / "sock").stat().st_uid == 65534
    assert (directory / "keys" / "deep").lstat().st_uid == 65534
