# SPDX-License-Identifier: BSD-2-Clause
"""The fake hypervisor keeps the rules of real guests."""

import sys
from pathlib import Path

import pytest

from moorage.errors import Failed
from moorage.node.hypervisors.base import Drive, GuestSpec
from moorage.node.hypervisors.fake import Fake
from moorage.protocol import Door
from moorage.storage import Where
from moorage.units import Mib

DISK = Drive(disk="d1", slot=0, size=Mib(64), where=Where(path="/srv/d1"))


def spec(uuid="u1", *drives):
    return GuestSpec(uuid=uuid, name=f"name-{uuid}", memory=Mib(128), drives=drives)


def silent(*_):
    pass


@pytest.fixture
def node(tmp_path):
    return Fake(tmp_path / "n1")


@pytest.fixture
def other(tmp_path):
    return Fake(tmp_path / "n2")


async def test_a_guest_starts_once_and_outlives_the_agent(node):
    await node.start(spec())
    await node.start(spec())
    again = Fake(node.run_dir)
    assert [guest.uuid for guest in await again.guests()] == ["u1"]
    assert (await again.find("u1")).state == "running"
    await again.reboot("u1")
    await again.stop("u1", 0)
    await again.stop("u1", 0)
    assert await node.guests() == []


async def test_drives_come_and_go_twice_as_once(node):
    await node.start(spec())
    for _ in range(2):
        await node.plug("u1", DISK)
    assert (await node.find("u1")).disks == ("d1",)
    await node.resize("u1", DISK)
    for _ in range(2):
        await node.unplug("u1", "d1")
    assert (await node.find("u1")).disks == ()
    with pytest.raises(Failed, match="does not have disk d1"):
        await node.resize("u1", DISK)


async def test_a_guest_that_is_not_there_is_named(node):
    with pytest.raises(Failed, match="guest u1 does not run on this node"):
        await node.plug("u1", DISK)
    await node.unplug("u1", "d1")
    assert await node.find("u1") is None


async def test_a_migration_moves_the_guest(node, other):
    await node.start(spec("u1", DISK))
    target = await other.incoming(spec("u1", DISK))
    assert target == await other.incoming(spec("u1", DISK))
    assert (await other.find("u1")).state == "incoming"
    for _ in range(2):
        moved = await node.migrate("u1", "127.0.0.1", target, silent)
        assert moved.transferred == 128
    assert (await node.find("u1")).state == "moved"
    assert (await other.find("u1")).state == "running"
    with pytest.raises(Failed, match="is moved here"):
        await node.resume("u1")
    with pytest.raises(Failed, match="is moved here"):
        await node.start(spec("u1"))
    await node.discard("u1")
    assert await node.guests() == []


async def test_a_migration_that_was_interrupted_between_its_halves_carries_on(
    node, other
):
    await node.start(spec())
    target = await other.incoming(spec())
    node._leave(node._get("u1"), target.place)
    assert (await other.find("u1")).state == "incoming"
    await node.migrate("u1", "127.0.0.1", target, silent)
    assert (await other.find("u1")).state == "running"


async def test_a_guest_whose_destination_cannot_write_it_stays(node, other):
    """A real one needs no room on a disk to arrive: none is lost between both."""
    await node.start(spec())
    target = await other.incoming(spec())
    (other.run_dir / "u1.part").mkdir()
    with pytest.raises(OSError, match="directory"):
        await node.migrate("u1", "127.0.0.1", target, silent)
    assert (await node.find("u1")).state == "running"
    assert (await other.find("u1")).state == "incoming"


async def test_a_migration_to_nowhere_leaves_the_guest_running(node, other):
    await node.start(spec("u1", DISK))
    with pytest.raises(Failed, match="not waited for"):
        await node.migrate(
            "u1", "", Door(port=1, place=f"fake:{other.run_dir}"), silent
        )
    target = await other.incoming(spec("u1"))
    with pytest.raises(Failed, match="other drives"):
        await node.migrate("u1", "127.0.0.1", target, silent)
    with pytest.raises(Failed, match="not the place"):
        await node.migrate("u1", "127.0.0.1", Door(port=1), silent)
    await node.resume("u1")
    await other.abort("u1")
    assert await other.guests() == []


async def test_a_running_guest_is_neither_aborted_nor_discarded(node):
    await node.start(spec())
    for verb in (node.abort, node.discard):
        with pytest.raises(Failed, match="is running here"):
            await verb("u1")
    with pytest.raises(Failed, match="is running here"):
        await node.incoming(spec())
    for verb in (node.abort, node.discard):
        await verb("nobody")


class Files:
    """Notes which files are opened and which directories are listed, while asked to.

    An audit hook cannot be removed, so there is one, and it can be silent.
    """

    def __init__(self):
        self.seen = None
        sys.addaudithook(self._note)

    def _note(self, event, args):
        if self.seen is not None and event in ("open", "os.listdir", "os.scandir"):
            self.seen.append(str(args[0]))


FILES = Files()


async def test_a_verb_touches_the_files_of_its_guest_alone(node):
    """So it costs the same, however many guests there are."""
    await node.start(spec())
    for number in range(100):
        node._file(f"x{number}").hardlink_to(node._file("u1"))
    FILES.seen = []
    await node.plug("u1", DISK)
    await node.unplug("u1", "d1")
    seen, FILES.seen = FILES.seen, None
    assert seen
    assert {Path(file).name.partition(".")[0] for file in seen} == {"u1"}
