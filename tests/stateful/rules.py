# SPDX-License-Identifier: BSD-2-Clause
"""What people and misfortune do to a cluster, in any order.

A rule is a request, or a mishap. Requests are submitted and left alone: several are
under way when the next rule comes, at any turn of the event loop. :meth:`Anything.rest`
waits for all of them and compares.

A new operation is a rule here and a method in :mod:`expected`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import comparing
from expected import Expected
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)
from msgspec.structs import replace

from moorage.errors import from_json
from moorage.jobs.job import Op
from moorage.model import Disk
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.state_snapshot import epochs

NODES = ("node1", "node2", "node3", "node4")
MASTER = "node1"
INSTANCES = ("web1", "web2", "web3", "web4", "web5")
NAMES = ("alpha", "beta", "gamma", "delta")
POOLS = ("fast", "slow")
KINDS: tuple[dict[str, Any], ...] = (
    {"disk_template": "ext", "provider": "san"},
    {"disk_template": "ext", "provider": "plainsan"},
    {"disk_template": "ext", "provider": "usersan"},
    {"disk_template": "sharedfile"},
    {"disk_template": "file"},
    {"disk_template": "plain"},
    {"disk_template": "rbd"},
    *({"disk_template": "ext", "pool": pool} for pool in POOLS),
)
"""What a disk may be made as, or become."""
LOCAL = {"file", "plain"}
"""Templates that say where a disk is made."""
MOST_DISKS = 12
MOST_WAITING = 8
"""Jobs under way, at most."""
PATIENCE = 20_000
"""Turns of the event loop after which a job that has not ended never will."""

which = st.integers(0, MOST_DISKS - 1)
nodes = st.sampled_from(NODES)
instances = st.sampled_from(INSTANCES)
kinds = st.sampled_from(KINDS)
names = st.sampled_from(NAMES)
pools = st.sampled_from(POOLS)
turns = st.integers(0, 40)
"""Turns of the event loop."""


def step(**choices: Any) -> Callable[[Any], Any]:
    """Make a rule of a method; after it, still nobody writes where others do."""

    def made(method: Any) -> Any:
        @wraps(method)
        def counted(self: "Anything", *args: Any, **chosen: Any) -> None:
            type(self).steps += 1
            method(self, *args, **chosen)
            assert self.cluster.nodes.san.broken == []

        return rule(**choices)(counted)

    return made


class Anything(RuleBasedStateMachine):
    """A simulated cluster to which anything happens.

    Attributes
    ----------
    directory
        Where clusters keep their files; each has a directory of its own.
    steps
        How many rules were carried out, in all lives together.
    succeeded
        Opcodes of the jobs that succeeded, and how many of each.
    """

    directory: ClassVar[Path]
    numbers: ClassVar[Iterator[int]]
    steps: ClassVar[int]
    succeeded: ClassVar[Counter[str]]

    @classmethod
    def begin(cls, directory: Path) -> None:
        """Forget what earlier tests counted."""
        cls.directory, cls.numbers = directory, count()
        cls.steps, cls.succeeded = 0, Counter()

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.expected = Expected()
        self.fresh = count(1)
        self.failed = True
        self.waiting: list[int] = []
        self.late: list[asyncio.Event] = []
        self.dark: set[str] = set()
        self.shaken: set[str] = set()
        self.spoilt: set[str] = set()
        self.epochs: dict[str, int] = {}

    @initialize()
    def start(self) -> None:
        """Start a cluster with an instance or two, as people have."""
        path = self.directory / f"{next(self.numbers)}"
        ticks = count()
        builder = ClusterBuilder(len(NODES))
        whole = replace(builder.objects["cluster"], volume_group_name="xenvg")
        builder.objects["cluster"] = whole
        self.cluster = self.loop.run(SimCluster.start(path, builder))
        self.cluster.clock = lambda: 1000.0 + next(ticks) / 1000
        self.loop.run(self.cluster.crash())
        self.loop.run(self.cluster.boot())
        self.create("web1", "node1", KINDS[0], which=0)
        self.create("web2", "node2", KINDS[3], which=1)
        self.add(KINDS[2], which=0)
        self.rest()

    # Requests.

    @step(name=instances, node=nodes, kind=kinds, which=which)
    def create(self, name: str, node: str, kind: dict[str, Any], which: int) -> None:
        if len(self.expected.disks) < MOST_DISKS:
            disks = [self.new(kind) for _ in range(1 + which % 2)]
            how = {"start": which % 3 > 0, "disk_template": kind["disk_template"]}
            on = {"pnode": node} if which % 4 else {}
            self.ask("INSTANCE_CREATE", instance_name=name, disks=disks, **on, **how)

    @step(kind=kinds, which=which)
    def add(self, kind: dict[str, Any], which: int) -> None:
        if len(self.expected.disks) < MOST_DISKS:
            new = {"name": f"disk{next(self.fresh)}", **self.place(which, kind)}
            self.ask("DISK_ADD", size=64 * (which + 1), **new)

    @step(disk=which, instance=which, front=st.booleans())
    def attach(self, disk: int, instance: int, front: bool) -> None:
        slot = {"index": 0} if front else {}
        name = self.instance(instance)
        self.on_disk("DISK_ATTACH", disk, self.free, instance_name=name, **slot)

    @step(disk=which)
    def detach(self, disk: int) -> None:
        self.on_disk("DISK_DETACH", disk, self.taken)

    @step(disk=which, amount=st.sampled_from((8, 64)))
    def grow(self, disk: int, amount: int) -> None:
        self.on_disk("DISK_GROW", disk, amount=amount)

    @step(disk=which, name=names)
    def rename(self, disk: int, name: str) -> None:
        self.on_disk("DISK_RENAME", disk, new_name=name)

    @step(disk=which, name=st.none() | names)
    def snapshot(self, disk: int, name: str | None) -> None:
        if self.copyable and len(self.expected.disks) < MOST_DISKS:
            self.on_disk("DISK_SNAPSHOT", disk + 1, self.copyable, new_name=name)

    @step(disk=which, kind=kinds | st.just({}))
    def clone(self, disk: int, kind: dict[str, Any]) -> None:
        if self.copyable and len(self.expected.disks) < MOST_DISKS:
            new = {"new_name": f"disk{next(self.fresh)}", **self.place(disk, kind)}
            self.on_disk("DISK_CLONE", disk + 1, self.copyable, **new)

    @step(disk=which, kind=kinds)
    def convert(self, disk: int, kind: dict[str, Any]) -> None:
        if "pool" not in kind:
            self.on_disk("DISK_CONVERT", disk, **self.place(disk, kind))

    @step(disk=which, tag=st.sampled_from(("a", "b")), away=st.booleans())
    def tag(self, disk: int, tag: str, away: bool) -> None:
        op = "TAGS_DEL" if away else "TAGS_SET"
        if self.expected.disks:
            self.ask(op, kind="disk", name=self.disk(disk), tags=[tag])

    @step(disk=which)
    def remove_disk(self, disk: int) -> None:
        self.on_disk("DISK_REMOVE", disk, self.free)

    @step(instance=which)
    def startup(self, instance: int) -> None:
        self.ask("INSTANCE_STARTUP", instance_name=self.instance(instance))

    @step(instance=which)
    def shutdown(self, instance: int) -> None:
        self.ask("INSTANCE_SHUTDOWN", instance_name=self.instance(instance))

    @step(instance=which, how=st.sampled_from(("hard", "full")))
    def reboot(self, instance: int, how: str) -> None:
        name = self.instance(instance)
        self.ask("INSTANCE_REBOOT", instance_name=name, reboot_type=how)

    @step(instance=which, node=nodes)
    def migrate(self, instance: int, node: str) -> None:
        name = self.instance(instance, up=True)
        self.ask("INSTANCE_MIGRATE", instance_name=name, target_node=node)

    @step(instance=which, node=nodes)
    def failover(self, instance: int, node: str) -> None:
        name = self.instance(instance)
        self.ask("INSTANCE_FAILOVER", instance_name=name, target_node=node)

    @step(instance=which)
    def remove(self, instance: int) -> None:
        self.ask("INSTANCE_REMOVE", instance_name=self.instance(instance))

    @step(node=st.sampled_from(NODES[1:]), offline=st.booleans())
    def mark(self, node: str, offline: bool) -> None:
        self.ask("NODE_SET_PARAMS", node_name=node, offline=offline)
        self.shaken.add(node)

    @step(name=pools, there=st.booleans())
    def make_pool(self, name: str, there: bool) -> None:
        groups = ["default"] if there else []
        self.ask("STORAGE_POOL_ADD", pool_name=name, provider="san", groups=groups)

    @step(name=pools)
    def remove_pool(self, name: str) -> None:
        self.ask("STORAGE_POOL_REMOVE", pool_name=name)

    @step(name=pools, there=st.booleans())
    def connect(self, name: str, there: bool) -> None:
        op = "STORAGE_POOL_CONNECT" if there else "STORAGE_POOL_DISCONNECT"
        self.ask(op, pool_name=name, groups=["default"])

    # What guests do.

    @step(disk=which)
    def write(self, disk: int) -> None:
        """Let a guest write to its disk, if one has it and runs."""
        if not self.taken:
            return
        uuid = self.taken[disk % len(self.taken)]
        for _, record in [one for two in self.guests().values() for one in two]:
            state = record["state"]
            if state["state"] == "running" and uuid in state["disks"]:
                data = f"write {next(self.fresh)}"
                comparing.write(self.cluster, record["drives"][uuid], data)
                self.expected.disks[uuid].writes.append(data)

    # Mishaps.

    @step(turns=turns)
    def wait(self, turns: int) -> None:
        """Let everybody go on for a while."""
        self.loop.run(self.turn(turns))

    @step()
    def kill_master(self) -> None:
        """Kill the master; the next one takes over. Steps on their way come late."""
        self.cluster.nodes.hold = None
        self.loop.run(self.cluster.crash())
        self.loop.run(self.cluster.boot())

    @step()
    def hold_back(self) -> None:
        """Hold up on their way all steps from now on."""
        if self.cluster.nodes.hold is None:
            self.cluster.nodes.hold = asyncio.Event()
            self.late.append(self.cluster.nodes.hold)

    @step(node=nodes)
    def kill_agent(self, node: str) -> None:
        if node not in self.dark:
            self.cluster.nodes.kill_agent(node)
            self.shaken.add(node)

    @step(node=st.sampled_from(NODES[1:]))
    @precondition(lambda self: not self.dark)
    def cut_power(self, node: str) -> None:
        self.cluster.nodes.cut_power(node)
        self.dark.add(node)
        self.shaken.add(node)

    @step()
    @precondition(lambda self: self.dark)
    def give_power(self) -> None:
        for node in self.dark:
            self.cluster.nodes.nodes[node].boot()
        self.dark.clear()

    @step(after=st.integers(0, 10))
    def lose_reply(self, after: int) -> None:
        nodes = self.cluster.nodes
        nodes.lose_reply.add(len(nodes.calls) + after)

    @step(node=nodes, after=st.integers(0, 5))
    def fail_command(self, node: str, after: int) -> None:
        """Let one of the next commands of a node fail."""
        left = count(after, -1)
        machine = self.cluster.nodes.nodes[node].machine
        machine.refuse = lambda _node, _command: next(left) == 0
        self.shaken.add(node)

    # Quiet moments.

    @step()
    def rest(self) -> None:
        """Wait until all is quiet, and compare."""
        self.failed = True
        self.loop.run(self.quiet())
        self.learn()
        self.mend()
        self.follow_guests()
        left = list(comparing.differences(self.cluster, self.expected))
        assert not left, "\n".join(left)
        now = epochs(self.cluster.config)
        fallen = {u for u, e in self.epochs.items() if now.get(u, e) < e}
        assert fallen == set()
        self.epochs = now
        self.check_held()
        self.shaken.clear()
        self.failed = False

    def check_held(self) -> None:
        """Compare what nodes hold; a detach that a mishap spoilt may be due still."""
        held, due = comparing.held(self.cluster), comparing.due(self.cluster.config)
        if not self.shaken:
            assert held - due <= self.spoilt
            lost = {one.rpartition(" ")[2] for one in due - held}
            asleep = [it for it in self.expected.instances.values() if it.asleep]
            assert lost <= {disk for one in asleep for disk in one.disks}
        self.spoilt = held - due

    def teardown(self) -> None:
        """Compare once more, with what the next master reads."""
        try:
            if not self.failed:
                self.rest()
                self.kill_master()
                self.rest()
                self.loop.run(self.cluster.stop())
        finally:
            self.loop.close()

    # Small parts.

    def new(self, kind: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a disk that is made with an instance."""
        rest = {key: kind[key] for key in kind if key != "disk_template"}
        number = next(self.fresh)
        return {"name": f"disk{number}", "size": 32 * (number % 8 + 1), **rest}

    @staticmethod
    def place(number: int, kind: dict[str, Any]) -> dict[str, Any]:
        """Return what a disk is made as, with a node where it wants one."""
        local = kind.get("disk_template") in LOCAL
        return {**kind, **({"node": NODES[number % len(NODES)]} if local else {})}

    @property
    def copyable(self) -> list[str]:
        """The disks that can go away before their copies: LVM's cannot."""
        found = self.expected.disks
        return sorted(u for u, it in found.items() if it.template != "plain")

    @property
    def taken(self) -> list[str]:
        """The disks that an instance has, as it was in the last quiet moment."""
        return sorted(u for it in self.expected.instances.values() for u in it.disks)

    @property
    def free(self) -> list[str]:
        """The disks that belonged to nobody then."""
        return sorted(self.expected.disks.keys() - set(self.taken))

    def instance(self, number: int, *, up: bool = False) -> str:
        """Return the name of an instance, mostly of one that there is."""
        there = [
            name for name, it in self.expected.instances.items() if it.up or not up
        ]
        among = there if there and number else INSTANCES
        return among[number % len(among)]

    def on_disk(
        self, op: str, number: int, among: Sequence[str] = (), **fields: Any
    ) -> None:
        """Ask for something on a disk, mostly on one of those named."""
        if self.expected.disks:
            self.ask(op, disk=self.disk(number, among), **fields)

    def disk(self, number: int, among: Sequence[str] = ()) -> str:
        """Return the uuid of a disk."""
        disks = among if among and number else sorted(self.expected.disks)
        return disks[number % len(disks)]

    def ask(self, op: str, **fields: Any) -> None:
        """Submit a job; nobody waits for it yet."""
        if len(self.waiting) >= MOST_WAITING:
            self.rest()
        number = self.loop.run(self.cluster.submit(f"OP_{op}", **fields))
        self.waiting.append(number)

    def guests(self) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Return the processes of guests."""
        return comparing.guests(self.cluster)

    async def turn(self, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    async def quiet(self) -> None:
        """Let late steps arrive, give nodes their power, and wait for all jobs."""
        self.cluster.nodes.hold = None
        for event in self.late:
            event.set()
        self.late.clear()
        for node in self.dark - self.expected.offline:
            self.cluster.nodes.nodes[node].boot()
        for node in self.dark - self.expected.offline:
            self.dark.discard(node)
        working = self.cluster.engine.queue.working
        for _ in range(PATIENCE):
            if not working:
                break
            await asyncio.sleep(0)
        stuck = [(job.current.summary, job.current.log) for job in working.values()]
        assert not stuck, f"these never end: {stuck}"
        await self.cluster.nodes.settle()
        for node in self.cluster.nodes.nodes.values():
            node.machine.refuse = lambda _node, _command: False

    def learn(self) -> None:
        """Take note of what jobs have answered, in the order in which they ended."""
        jobs = [self.cluster.engine.job(number) for number in self.waiting]
        self.waiting.clear()
        for op in sorted((op for job in jobs for op in job.ops), key=_end):
            self.note(op.input, op)
        self.expected.believe(self.cluster.config)
        for name in [key for key in self.expected.disks if key.startswith("disk")]:
            found = self.cluster.config.called(Disk, name)
            assert len(found) == 1, f"disk {name} was made, and is not there"
            self.expected.look_up(name, found[0].uuid)
        self.format()

    def note(self, opcode: dict[str, Any], op: Op) -> None:
        if op.status == "success":
            self.succeeded[opcode["OP_ID"]] += 1
            self.expected.apply(opcode, op.result)
        else:
            assert "internal error" not in str(from_json(op.error))
            if op.committed_to():
                assert self.shaken, f"{op.summary} stopped half-way: {op.error}"
                self.expected.doubt(opcode)

    def mend(self) -> None:
        """Do with disks in quarantine what people do who have looked at them."""
        suspects = [it for it in self.cluster.config.all(Disk) if it.quarantine]
        for node in sorted(self.expected.offline) if suspects else ():
            self.give_power()
            self.done("NODE_SET_PARAMS", node_name=node, offline=False)
            self.expected.offline.discard(node)
        found = comparing.contents(self.cluster)
        for disk in suspects:
            assert self.shaken, disk.quarantine
            volume = comparing.place_of(disk.volume)
            if disk.uuid in self.expected.disks and volume in found:
                self.done("DISK_SET_PARAMS", disk=disk.uuid, lift_quarantine=True)
                continue
            if self.cluster.config.owner(disk):
                self.done("DISK_DETACH", disk=disk.uuid)
            self.done("DISK_REMOVE", disk=disk.uuid)
            self.expected.forget(disk.uuid)

    def done(self, op: str, **fields: Any) -> None:
        """Do something that must succeed."""
        self.loop.run(self.cluster.run(f"OP_{op}", **fields))

    def format(self) -> None:
        """Write to new disks, and see what was written to copies."""
        found = comparing.contents(self.cluster)
        for uuid, disk in self.expected.disks.items():
            volume = comparing.place_of(self.cluster.config.disk(uuid).volume)
            if volume in found and not disk.writes:
                disk.writes = [f"first {next(self.fresh)}"]
                comparing.write(self.cluster, volume, disk.writes[0])
            elif volume in found and found[volume][1] in disk.writes:
                disk.writes = [found[volume][1]]

    def follow_guests(self) -> None:
        """Compare where guests run; one whose node lost power may be down."""
        found = self.guests()
        for name, expected in self.expected.instances.items():
            instance = self.cluster.config.instance(name)
            where = [
                (node, record["state"]["state"], set(record["state"]["disks"]))
                for node, record in found.pop(instance.uuid, [])
            ]
            right = [(expected.node, "running", set(expected.disks))]
            if where == []:
                assert self.shaken or not expected.up or expected.asleep, name
            else:
                assert where == right, name
                assert expected.up, name
            expected.asleep = expected.up and where == []
        assert found == {}


def _end(op: Op) -> Any:
    return op.end_timestamp
