# SPDX-License-Identifier: BSD-2-Clause
"""The users that guests run as: each is one guest's, for as long as it lives."""

import os
import subprocess
import sys

import pytest

from moorage.errors import BadInput, Failed, NotFound
from moorage.model import uidpool
from moorage.model.hvparams import parameters
from moorage.node.machine import users

POOL = ((2_100_500_000, 2_100_500_002),)
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to give")


def take(tmp_path, pool=POOL, **given):
    return users.take(parameters(given), pool, tmp_path / "locks")


@root
def test_guests_never_share_a_user(tmp_path):
    taken = [take(tmp_path) for _ in range(3)]
    assert {one.uid for one in taken} == {2_100_500_000, 2_100_500_001, 2_100_500_002}
    assert [one.gid for one in taken] == [one.uid for one in taken]
    with pytest.raises(Failed, match="no user for another guest") as caught:
        take(tmp_path)
    assert "--add-uids" in caught.value.hint
    os.close(taken[1].lock)
    assert take(tmp_path).uid == taken[1].uid


@root
def test_what_a_guest_inherits_of_its_lock_fills_no_file_system(tmp_path):
    user = take(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(user.lock, b"x")
    os.close(user.lock)


@root
def test_a_user_is_the_guests_as_long_as_its_process_lives(tmp_path):
    """The process inherits the lock; whoever took the user may be long gone."""
    user = take(tmp_path, ((2_100_500_000, 2_100_500_000),))
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    guest = subprocess.Popen(wait, stdin=subprocess.PIPE, pass_fds=[user.lock])
    os.close(user.lock)
    with pytest.raises(Failed):
        take(tmp_path, ((user.uid, user.uid),))
    guest.communicate()
    os.close(take(tmp_path, ((user.uid, user.uid),)).lock)


@root
def test_a_user_that_has_a_process_is_not_given_to_a_guest(tmp_path):
    """Not even one that took no lock, such as somebody's shell."""
    uid = 2_100_500_009
    wait = ["sh", "-c", "echo; exec cat"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    stranger = subprocess.Popen(wait, user=uid, cwd="/", **pipes)
    stranger.stdout.readline()
    with pytest.raises(Failed):
        take(tmp_path, ((uid, uid),))
    stranger.communicate()
    os.close(take(tmp_path, ((uid, uid),)).lock)


@root
def test_a_user_by_name_must_exist(tmp_path):
    found = take(tmp_path, security_model="user", security_domain="nobody")
    assert found.uid > 0
    assert found.lock is None
    with pytest.raises(BadInput, match="no user 'nemo'"):
        take(tmp_path, security_model="user", security_domain="nemo")
    with pytest.raises(BadInput, match="needs a user's name"):
        take(tmp_path, security_model="user")


@root
def test_nobody_has_capabilities(tmp_path):
    own, agents = take(tmp_path), take(tmp_path, security_model="none")
    for user in (own, agents):
        words = [*user.words(), "cat", "/proc/self/status"]
        told = subprocess.check_output(words, text=True)
        status = dict(line.split(":\t") for line in told.splitlines() if ":\t" in line)
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        assert status["Uid"].split() == [str(user.uid or 0)] * 4
    os.close(own.lock)


@root
def test_the_agents_groups_are_not_its_guests(tmp_path):
    own, named = take(tmp_path), users.User(uid=65534, gid=65534, groups=(65534,))
    for user, more, groups in ((own, (), []), (own, (104,), [104]), (named, (), None)):
        words = [*user.words(*more), sys.executable, "-c", _GROUPS]
        found = subprocess.check_output(words, text=True, extra_groups=[6, 4])
        assert found.split() == [str(one) for one in groups or user.groups or ()]
    os.close(own.lock)


_GROUPS = "import os; print(*os.getgroups())"


@root
@pytest.mark.parametrize(
    ("mode", "group", "expected"),
    [(0o666, 0, ()), (0o660, 104, (104,)), (0o660, 0, None), (0o600, 104, None)],
)
def test_kvm_is_opened_through_its_group(tmp_path, mode, group, expected):
    device = tmp_path / "kvm"
    device.touch()
    os.chown(device, 0, group)
    device.chmod(mode)
    user = users.User(uid=2_100_500_000, gid=2_100_500_000)
    if expected is None:
        with pytest.raises(Failed, match="cannot open"):
            users.kvm_group(user, device)
    else:
        assert users.kvm_group(user, device) == expected
    assert users.kvm_group(users.User(), device) == ()


def test_a_pool_is_written_as_ganeti_does():
    assert uidpool.parsed("2000,1000-1019") == ((1000, 1019), (2000, 2000))
    assert uidpool.shown(((1000, 1019), (2000, 2000))) == "1000-1019,2000"
    assert uidpool.parsed("") == ()


@pytest.mark.parametrize("text", ["0-10", "5-4", "1-4294967295", "a", "1-2-3", "1-9,9"])
def test_a_pool_without_sense_is_refused(text):
    with pytest.raises(BadInput):
        uidpool.parsed(text)


def test_ranges_come_and_go():
    pool = uidpool.added(((10, 19),), ((30, 39), (10, 19)))
    assert pool == ((10, 19), (30, 39))
    assert uidpool.removed(pool, ((10, 19),)) == ((30, 39),)
    with pytest.raises(NotFound, match="no range 11-19"):
        uidpool.removed(pool, ((11, 19),))
    with pytest.raises(BadInput, match="already"):
        uidpool.added(pool, ((39, 40),))
