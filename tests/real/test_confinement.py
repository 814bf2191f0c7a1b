# SPDX-License-Identifier: BSD-2-Clause
"""What a guest's QEMU may do, and what it gets, seen from the outside."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from moorage.errors import Failed
from moorage.node.hypervisors.base import Card
from moorage.node.hypervisors.kvm import Kvm
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.process import gone

pytestmark = pytest.mark.real

STARTS_AND_DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from msgspec.json import decode
from moorage.node.hypervisors.base import GuestSpec
from moorage.node.hypervisors.kvm import Kvm
asyncio.run(Kvm(Path(sys.argv[1])).start(decode(sys.argv[2], type=GuestSpec)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def silent(*_):
    pass


def process(node, spec):
    """Return what Linux says of a guest's QEMU."""
    pid = node._home(spec.uuid).pid()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def user(node, spec):
    """Return the only user-id that a guest's QEMU has."""
    (uid,) = set(process(node, spec)["Uid"].split())
    return int(uid)


def words(node, spec):
    pid = node._home(spec.uuid).pid()
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


@pytest.fixture
def on_two():
    """Return how a test runs guests that end with it."""

    class Guests(list):
        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            for node, uuid in self:
                await node.stop(uuid, 0)

        async def start(self, node, spec):
            self.append((node, spec.uuid))
            await node.start(spec)

    return Guests


async def test_a_guest_is_an_unprivileged_user_of_its_own_in_a_sandbox(lab, on_two):
    async with on_two() as guests:
        first, second = lab.spec(), lab.spec()
        await guests.start(lab.one, first)
        await guests.start(lab.two, second)
        for node, spec in ((lab.one, first), (lab.two, second)):
            status = process(node, spec)
            assert user(node, spec) >= 2_100_000_000
            assert set(status["Gid"].split()) == {str(user(node, spec))}
            assert status["Groups"].split() == []
            for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                assert int(status[caps], 16) == 0
            assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")
        assert user(lab.one, first) != user(lab.two, second)


async def test_nothing_of_the_agents_environment(lab, on_two, monkeypatch):
    monkeypatch.setenv("MOORAGE_SECRET", "4711")
    async with on_two() as guests:
        spec = lab.spec()
        await guests.start(lab.one, spec)
        pid = lab.one._home(spec.uuid).pid()
        found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    names = {one.partition(b"=")[0] for one in found if one}
    assert names <= {b"PATH", b"TZ", b"CEPH_ARGS", b"CEPH_CONF", b"LC_ALL", b"PWD"}


async def test_the_agents_user_without_its_capabilities(lab, on_two):
    """`security_model=none` is Ganeti's old way."""
    async with on_two() as guests:
        spec = lab.spec(lab.drive("file"), security_model="none")
        await guests.start(lab.one, spec)
        status = process(lab.one, spec)
        assert user(lab.one, spec) == os.geteuid()
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")


async def test_a_user_that_is_named(lab, on_two):
    async with on_two() as guests:
        named = {"security_model": "user", "security_domain": "nobody"}
        spec = lab.spec(lab.drive("file"), **named)
        await guests.start(lab.one, spec)
        assert user(lab.one, spec) == 65534


async def test_a_user_comes_back_when_the_guest_is_gone_whatever_the_agent_did(lab):
    uid = 2_100_600_000
    spec, other = (
        replace(one, uid_pool=((uid, uid),)) for one in (lab.spec(), lab.spec())
    )
    argv = [sys.executable, "-c", STARTS_AND_DIES, str(lab.two.run_dir)]
    died = await asyncio.create_subprocess_exec(*argv, encode(spec).decode())
    assert await died.wait() == -signal.SIGKILL
    assert user(lab.two, spec) == uid
    for node in (lab.one, lab.two):
        with pytest.raises(Failed, match="no user for another guest"):
            await node.start(other)
    os.kill(lab.two._home(spec.uuid).pid(), signal.SIGKILL)
    assert await gone(lab.two._home(spec.uuid), 10)
    await lab.two.start(other)
    assert user(lab.two, other) == uid
    await lab.two.stop(other.uuid, 0)


async def test_a_guest_migrates_to_another_user(lab, on_two):
    async with on_two() as guests:
        drive = lab.drive("file")
        spec = lab.spec(drive)
        await guests.start(lab.one, spec)
        guests.append((lab.two, spec.uuid))
        async with lab.inside(lab.one, spec) as inside:
            await inside.wait_ready()
        left = user(lab.one, spec)
        target = await lab.two.incoming(spec)
        await lab.one.migrate(spec.uuid, lab.two.address, target, silent)
        assert user(lab.two, spec) not in (left, 0)
        await lab.one.discard(spec.uuid)
        await lab.two.go_on(spec.uuid)
        async with lab.inside(lab.two, spec) as inside:
            await inside.run(f"echo still writes > {await inside.disk(drive.disk)}")


# -- images ----------------------------------------------------------------------------


@pytest.fixture
def swapped(lab):
    """Return a drive in whose image's place somebody put a link to a secret."""
    drive = lab.drive("file")
    secret = lab.top / "ca.key"
    secret.write_bytes(b"the authority's key".ljust(1 << 20))
    image = Path(drive.where.path)

    def swap():
        image.unlink()
        image.symlink_to(secret)
        return drive

    return drive, swap


async def test_a_link_in_an_images_place_is_given_to_no_guest(lab, on_two, swapped):
    """Not at the start, not to a guest that runs, not at a migration's end."""
    drive, swap = swapped
    spec = lab.spec(drive)
    async with on_two() as guests:
        await guests.start(lab.one, spec)
        other = lab.spec()
        await guests.start(lab.one, other)
        swap()
        with pytest.raises(Failed, match="does not open"):
            await lab.two.incoming(spec)
        assert await lab.two.find(spec.uuid) is None
        with pytest.raises(Failed, match="does not open"):
            await lab.one.plug(other.uuid, drive)
        assert (await lab.one.find(other.uuid)).disks == ()
        await lab.one.stop(spec.uuid, 0)
        with pytest.raises(Failed, match="does not open"):
            await lab.one.start(spec)
        assert await lab.one.find(spec.uuid) is None


async def test_only_regular_files_are_images(lab):
    drive = lab.drive("file")
    image = Path(drive.where.path)
    image.unlink()
    image.mkdir()
    with pytest.raises(Failed, match="no regular file"):
        await lab.one.start(lab.spec(drive))


# -- network cards ---------------------------------------------------------------------


async def test_without_a_bridge_a_guest_reaches_nothing(lab, on_two):
    """Not even the node's own loopback, which QEMU's user networking would show it."""
    reach = """for n in /sys/class/net/eth*; do [ -e $n ] || continue; i=${n##*/}
        ip addr add 10.0.2.15/24 dev $i; ip link set $i up; done
        ip route add default via 10.0.2.2 2>/dev/null
        echo hello | nc -w 2 10.0.2.2 %d && echo reached; true"""
    with socket.create_server(("127.0.0.1", 0)) as secret:
        secret.setblocking(False)
        async with on_two() as guests:
            bare = lab.spec()
            carded = replace(lab.spec(), cards=(Card(mac="aa:00:00:00:00:77"),))
            for spec in (bare, carded):
                await guests.start(lab.one, spec)
                assert "-netdev" not in words(lab.one, spec)
                assert "-nic" not in words(lab.one, spec)
            async with lab.inside(lab.one, carded) as inside:
                await inside.wait_ready()
                port = secret.getsockname()[1]
                assert "reached" not in await inside.run(reach % port)
        with pytest.raises(BlockingIOError):
            secret.accept()


async def test_a_card_is_in_the_bridge_as_long_as_its_guest_lives(lab, on_two):
    bridge = "mrgtest0"
    await ip("link", "add", bridge, "mtu", "1400", "type", "bridge")
    try:
        card = Card(mac="aa:00:00:00:00:78", link=bridge)
        spec = replace(lab.spec(), cards=(card,))
        members = Path(f"/sys/class/net/{bridge}/brif")
        async with on_two() as guests:
            await guests.start(lab.one, spec)
            (tap,) = members.iterdir()
            assert Path(f"/sys/class/net/{tap.name}/mtu").read_text() == "1400\n"
            assert user(lab.one, spec) != 0
        assert list(members.iterdir()) == []
        missing = replace(spec, cards=(replace(card, link="mrgtest9"),))
        with pytest.raises(Failed, match="bridge mrgtest9"):
            await lab.one.start(missing)
    finally:
        await ip("link", "del", bridge)


async def ip(*words):
    done = await asyncio.create_subprocess_exec("ip", *words)
    assert await done.wait() == 0


async def test_a_guest_that_never_comes_up_leaves_nothing(lab):
    """Its user is free again, too, as soon as its process is gone altogether."""
    uid = 2_100_600_001
    node = Kvm(lab.top / "never", program="/bin/false")
    spec = replace(lab.spec(), uid_pool=((uid, uid),))
    with pytest.raises(Failed, match="did not start"):
        await node.start(spec)
    async with asyncio.timeout(30):
        while True:
            with pytest.raises(Failed) as caught:
                await node.start(spec)
            if "did not start" in caught.value.message:
                break
            await asyncio.sleep(0.1)
    assert await node.guests() == []


async def test_a_start_waits_for_a_process_that_is_ending(lab):
    """It is no guest that has started: the start makes a process of its own."""
    top, spec = lab.top / "ending", lab.spec()
    held = Home(top, spec.uuid).claim()
    ending = await asyncio.create_subprocess_exec("sleep", "1", pass_fds=[held])
    os.close(held)
    with pytest.raises(Failed, match="did not start"):
        await Kvm(top, program="/bin/false").start(spec)
    assert await ending.wait() == 0
