# SPDX-License-Identifier: BSD-2-Clause
"""The agent: verbs twice are verbs once, late steps are refused, memory is on disk."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, Failed, NotSupported, Stale, WrongState
from moorage.model import Disk
from moorage.model.change import encode
from moorage.model.standstill import NO_ANSWER
from moorage.node.agent import Agent
from moorage.node.records.attachments import Attachments
from moorage.node.records.creations import volume_key
from moorage.node.records.fence import Fence
from moorage.storage import Where
from moorage.testing.guests import SimHypervisor, TwoWriters
from moorage.testing.machine import SimMachine
from moorage.testing.storage import San
from moorage.units import Mib

DISK = Disk(
    uuid="d1",
    dev_type="ext",
    logical_id=("san", "vol1"),
    size=Mib(64),
    name="data",
    epoch=3,
    params={"provider": "san"},
)
GUEST = {"uuid": "g1", "name": "web", "memory": 128}


class Node:
    """An agent and what it works on."""

    def __init__(self, directory: Path, name: str = "node1", san: San | None = None):
        self.san = san or San()
        self.machine = SimMachine(name, self.san)
        self.name = name
        self.directory = directory / name
        self.boot()

    def boot(self) -> None:
        """Start the agent, again perhaps."""
        hypervisors = {"kvm": SimHypervisor(self.name, self.san)}
        self.agent = Agent(self.name, self.directory, self.machine, hypervisors)

    async def disk(self, verb: str, disk: Disk = DISK, term: int = 1, **more: Any):
        args = {"disk": encode(disk), "hypervisor": "kvm"} | more
        return await self.agent.handle(f"disk.{verb}", args, term, _silent)

    async def guest(self, verb: str, *disks: Disk, term: int = 1, **more: Any):
        args = GUEST | {"disks": [encode(disk) for disk in disks]} | more
        return await self.agent.handle(verb, args, term, _silent)

    def held(self) -> list[str]:
        return [one.disk for one in self.agent._context.attachments.all()]


def _silent(_done: int, _total: int, _unit: str, _note: str) -> None:
    pass


@pytest.fixture
async def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    await node.disk("create")
    return node


async def running(node: Node) -> None:
    await node.disk("attach", opened="exclusive")
    await node.guest("instance.start", DISK)


# -- twice is once -----------------------------------------------------------------


@pytest.mark.parametrize(
    "verbs",
    [
        ["create"],
        ["attach"],
        ["attach", "detach"],
        ["detach"],
        ["attach", "open", "close"],
        ["remove"],
        ["grow"],
    ],
)
async def test_a_disk_verb_twice_is_the_same_as_once(
    tmp_path: Path, verbs: list[str]
) -> None:
    seen = []
    for times in (1, 2):
        node = Node(tmp_path / str(times))
        await node.disk("create")
        for verb in verbs:
            for _ in range(times):
                await node.disk(verb, to=128)
        seen.append((node.san.volumes, node.san.attached, node.held()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "verbs",
    [
        ["instance.start"],
        ["instance.start", "instance.stop"],
        ["instance.stop"],
        ["migration.prepare"],
        ["migration.prepare", "migration.abort"],
        ["migration.abort"],
        ["migration.discard"],
    ],
)
async def test_a_guest_verb_twice_is_the_same_as_once(
    tmp_path: Path, verbs: list[str]
) -> None:
    seen = []
    for times in (1, 2):
        node = Node(tmp_path / str(times))
        await node.disk("create")
        await node.disk("attach")
        for verb in verbs:
            for _ in range(times):
                await node.guest(verb, DISK)
        seen.append((node.san.guests, node.held()))
    assert seen[0] == seen[1]


async def test_plugging_twice_is_plugging_once(node: Node) -> None:
    await node.disk("attach")
    await node.guest("instance.start")
    plug = {"disk": encode(DISK), "slot": 0}
    for _ in range(2):
        await node.guest("instance.plug", **plug)
    (guest,) = node.san.guests.values()
    assert tuple(guest["state"]["disks"]) == ("d1",)
    for _ in range(2):
        await node.guest("instance.unplug", **plug)
    (guest,) = node.san.guests.values()
    assert tuple(guest["state"]["disks"]) == ()


# -- what a guest uses -------------------------------------------------------------


@pytest.mark.parametrize("verb", ["detach", "remove"])
async def test_a_disk_that_a_guest_has_is_not_taken_away(node: Node, verb: str) -> None:
    await running(node)
    with pytest.raises(WrongState, match="guest web on node node1 still uses disk"):
        await node.disk(verb)
    assert node.san.attached == {"node1 vol1": {"open": True}}


@pytest.mark.parametrize("verb", ["detach", "remove"])
async def test_a_guest_that_does_not_say_what_it_has_keeps_what_it_was_given(
    node: Node, verb: str
) -> None:
    """Its QEMU hangs, and may go on and write."""
    await running(node)
    (guest,) = node.san.guests.values()
    guest["state"] |= {"state": "paused", "cause": NO_ANSWER, "disks": []}
    with pytest.raises(WrongState, match="guest web on node node1 still uses disk"):
        await node.disk(verb)
    assert node.san.attached == {"node1 vol1": {"open": True}}


async def test_a_guest_starts_with_attached_disks_only(node: Node) -> None:
    with pytest.raises(WrongState, match="disk data is not attached on node node1"):
        await node.guest("instance.start", DISK)
    assert node.san.guests == {}


async def test_what_it_holds_survives_the_agent(node: Node) -> None:
    await running(node)
    node.boot()
    assert node.held() == ["d1"]
    with pytest.raises(WrongState, match="still uses disk"):
        await node.disk("detach")


@pytest.mark.parametrize("end", ["drop", "split"])
async def test_a_volume_that_a_mirror_writes_to_is_not_taken_away(
    node: Node, end: str
) -> None:
    await running(node)
    target = replace(DISK, uuid="d2", name="copy", logical_id=("san", "vol2"))
    await node.disk("create", target)
    await node.disk("attach", target)
    await node.guest("mirror.start", disk=encode(DISK), to=encode(target))
    node.boot()
    await node.disk("attach", target)  # twice is once
    for verb in ("detach", "remove"):
        with pytest.raises(WrongState, match="node node1 is being given disk copy"):
            await node.disk(verb, target)
    if end == "drop":
        given_up = {"disk": encode(target), "guest": "g1", "of": "d1"}
        await node.agent.handle("mirror.drop", given_up, 1, _silent)
    else:
        await node.guest("mirror.split", disk=encode(DISK), to=encode(target))
    assert node.held() == ["d1", "d2"]
    await node.disk("detach", target)
    assert node.held() == ["d1"]


# -- fences ------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["attach", "detach", "remove", "close", "open"])
async def test_a_step_of_an_older_epoch_is_refused(node: Node, verb: str) -> None:
    await node.disk("attach")
    late = replace(DISK, epoch=2)
    with pytest.raises(Stale, match="disk data is at epoch 3: a step of epoch 2"):
        await node.disk(verb, late)
    node.boot()
    with pytest.raises(Stale):
        await node.disk(verb, late)
    assert "vol1" in node.san.volumes


@pytest.mark.parametrize(
    "verb", ["instance.start", "migration.prepare", "migration.resume"]
)
async def test_a_guests_step_with_an_older_epoch_is_refused(
    node: Node, verb: str
) -> None:
    await node.disk("attach")
    with pytest.raises(Stale):
        await node.guest(verb, replace(DISK, epoch=2))


@pytest.mark.parametrize("verb", ["begin", "renew", "restore", "release"])
async def test_a_disk_with_one_copy_is_asked_for_no_second_one(
    node: Node, verb: str
) -> None:
    args = {"disk": encode(DISK), "hypervisor": "kvm"}
    with pytest.raises(NotSupported, match="'ext' cannot be mirrored") as said:
        await node.agent.handle(f"mirror.{verb}", args, 1, _silent)
    assert said.value.facts == {"disk": DISK.uuid, "template": "ext"}


async def test_a_step_of_an_older_master_is_refused(node: Node) -> None:
    await node.disk("attach", term=5)
    for verb in ("attach", "detach", "remove"):
        with pytest.raises(Stale, match="a master of term 5 has spoken: term 4 is"):
            await node.disk(verb, term=4)
    node.boot()
    with pytest.raises(Stale):
        await node.guest("instance.stop", term=4)


async def test_a_question_of_the_next_master_is_enough(node: Node) -> None:
    await node.agent.handle("guests", {}, 7, _silent)
    with pytest.raises(Stale):
        await node.disk("remove", term=6)
    assert "vol1" in node.san.volumes


async def test_a_step_that_waited_for_its_turn_is_late_too(node: Node) -> None:
    """While an attach lasts, the old master's detach waits, and a new one speaks."""
    slow = asyncio.Event()
    run = node.machine.run

    async def slowly(command: Any, limit: float, *more: Any) -> Any:
        await slow.wait()
        return await run(command, limit, *more)

    node.machine.run = slowly
    attach = asyncio.create_task(node.disk("attach", term=1))
    await asyncio.sleep(0)
    late = asyncio.create_task(node.disk("detach", term=1))
    await asyncio.sleep(0)
    await node.agent.handle("guests", {}, 2, _silent)
    slow.set()
    await attach
    with pytest.raises(Stale):
        await late
    assert node.held() == ["d1"]


def test_a_fence_remembers_the_highest_number(tmp_path: Path) -> None:
    Fence(tmp_path).pass_term(3)
    Fence(tmp_path).pass_disk(DISK)
    again = Fence(tmp_path)
    again.pass_term(3)
    again.pass_disk(DISK)
    with pytest.raises(Stale):
        again.pass_term(2)
    with pytest.raises(Stale):
        again.pass_disk(replace(DISK, epoch=0))
    again.pass_disk(replace(DISK, epoch=9))
    with pytest.raises(Stale):
        Fence(tmp_path).pass_disk(DISK)


def test_the_shelf_knows_where_and_who(tmp_path: Path) -> None:
    shelf = Attachments(tmp_path)
    shelf.put(DISK, Where(path="/dev/x", block=True))
    shelf.use("d1", "kvm", "g1")
    shelf.use("d1", "kvm", "g1")
    shelf.put(DISK, Where(path="/dev/y", block=True))  # attached again
    assert Attachments(tmp_path).users("d1") == (("kvm", "g1"),)
    assert [(one.disk, one.path, one.epoch) for one in shelf.all()] == [
        ("d1", "/dev/y", 3)
    ]
    shelf.drop("d1")
    shelf.drop("d1")
    assert (shelf.all(), shelf.get("d1"), shelf.users("d1")) == ([], None, ())


# -- bad requests ------------------------------------------------------------------


async def test_bad_requests_are_one_sentence(node: Node) -> None:
    with pytest.raises(BadInput, match=r"the agent has no verb 'disk\.format'"):
        await node.disk("format")
    with pytest.raises(BadInput, match=r"disk\.attach: "):
        await node.agent.handle("disk.attach", {"disk": {"uuid": 1}}, 1, _silent)
    with pytest.raises(BadInput, match="missing required field `disk`"):
        await node.guest("instance.plug")


# -- migration ---------------------------------------------------------------------


async def test_who_arrived_can_tell(tmp_path: Path, node: Node) -> None:
    other = Node(tmp_path, "node2", node.san)
    await running(node)
    await node.disk("open", exclusive=False)
    await other.disk("attach", opened="shared")
    door = await other.guest("migration.prepare", DISK)
    with pytest.raises(Failed, match="guest web does not run on node node2"):
        await other.guest("migration.arrived")
    await node.guest("migration.run", DISK, door=door, address="")
    await node.guest("migration.run", DISK, door=door, address="")  # it carries on
    await other.guest("migration.arrived")
    with pytest.raises(Failed):
        await node.guest("migration.arrived")
    with pytest.raises(Failed, match="moved away"):
        await node.guest("migration.resume", DISK)
    with pytest.raises(Failed, match="runs on node2"):
        await other.guest("migration.abort", DISK)
    await node.disk("detach")  # what is left of the guest does not hold it
    assert node.held() == []


async def test_a_transfer_that_cannot_be_followed_is_given_up_before_it_has_failed(
    node: Node,
) -> None:
    """The guest may be about to run elsewhere: nobody is told that it stays."""
    await running(node)
    hypervisor = node.agent._context.hypervisor("kvm")
    asked: list[str] = []

    async def migrate(*_: Any, **__: Any) -> Any:
        raise Failed("the monitor of guest web says nothing")

    async def moved(uuid: str) -> None:
        asked.append(uuid)
        raise Failed("guest web has moved")

    async def stays(uuid: str) -> None:
        asked.append(uuid)

    hypervisor.migrate = migrate  # type: ignore[method-assign]
    door = {"port": 1, "key": "ab" * 32, "ports": {}}
    for resume, kind in ((moved, Failed), (stays, WrongState)):
        hypervisor.resume = resume  # type: ignore[method-assign]
        with pytest.raises(kind, match="the monitor of guest web says nothing"):
            await node.guest("migration.run", DISK, door=door, address="")
    assert asked == ["g1", "g1"]


async def test_the_simulator_notices_two_writers(tmp_path: Path, node: Node) -> None:
    other = Node(tmp_path, "node2", node.san)
    await running(node)
    await other.disk("attach")
    with pytest.raises(TwoWriters):
        await other.guest("instance.start", DISK)
    assert node.san.broken


async def test_what_an_earlier_agent_left_at_work_is_waited_for(node: Node) -> None:
    """Nothing touches a volume while the program of an agent that died still may."""
    asked: list[set[str]] = []
    gone = asyncio.Event()

    async def settle(objects: Any) -> None:
        asked.append(set(objects))
        await gone.wait()

    node.machine.settle = settle  # type: ignore[method-assign]
    node.machine.ran.clear()
    detaching = asyncio.create_task(node.disk("detach"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert node.machine.ran == []
    gone.set()
    await detaching
    assert node.machine.ran != []
    assert asked == [{"d1", volume_key(DISK)}]


async def test_two_disks_of_one_volume_wait_for_each_other(node: Node) -> None:
    """A late create and the undo of its successor may know it by different uuids."""
    other = replace(DISK, uuid="d2", name="copy")
    gate, running = asyncio.Event(), []

    async def settle(objects: Any) -> None:
        running.append(objects)
        await gate.wait()

    node.machine.settle = settle  # type: ignore[method-assign]
    both = [asyncio.create_task(node.disk("detach", one)) for one in (DISK, other)]
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(running) == 1
    gate.set()
    await asyncio.gather(*both)
    assert len(running) == 2


def test_a_boot_ends_every_attachment_and_an_agents_end_none(tmp_path: Path) -> None:
    shelf = Attachments(tmp_path, boot="b1")
    shelf.put(DISK, Where(path="/dev/x", block=True))
    shelf.use("d1", "kvm", "g1")
    assert Attachments(tmp_path, boot="b1").users("d1") == (("kvm", "g1"),)
    assert Attachments(tmp_path, boot="b2").all() == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_former_version_attached_is_held_until_it_is_let_go(
    tmp_path: Path,
) -> None:
    Attachments(tmp_path).put(DISK, Where(path="/dev/x", block=True))
    assert [one.disk for one in Attachments(tmp_path, boot="b2").all()] == ["d1"]
