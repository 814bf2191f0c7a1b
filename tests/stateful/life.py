# SPDX-License-Identifier: BSD-2-Clause
"""The life of one simulated cluster: requests under way, and quiet moments.

Requests are submitted and left alone: several are under way when the next thing
happens, at any turn of the event loop. :meth:`Life.rest` waits for all of them and
compares the cluster with what is expected.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial, wraps
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar

import comparing
from expected import Expected
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from msgspec.structs import replace

from moorage.errors import Conflict, Refused, Stale, from_json
from moorage.jobs.job import Job, Op
from moorage.model import Disk, Instance
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP
from moorage.testing.rbd import POOL as CEPH_POOL
from moorage.testing.state_snapshot import epochs
from moorage.testing.stored import GLUSTER_DIR

NODES = ("node1", "node2", "node3", "node4")
GUEST_NODE = "node5"
"""A node that comes and goes; at first it is alone in its group."""
GROUPS = ("default", "rack2")
MEMORY = 640
"""MiB of a node; an eighth is its own, and so four small guests fit."""
INSTANCES = ("web1", "web2", "web3", "web4", "web5")
POOLS = ("fast", "slow")
KINDS: tuple[dict[str, Any], ...] = (
    {"disk_template": "ext", "provider": "san"},
    {"disk_template": "ext", "provider": "plainsan"},
    {"disk_template": "ext", "provider": "usersan"},
    {"disk_template": "sharedfile"},
    {"disk_template": "file"},
    {"disk_template": "plain"},
    {"disk_template": "drbd"},
    {"disk_template": "rbd"},
    {"disk_template": "gluster"},
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
pools = st.sampled_from(POOLS)


def step(**choices: Any) -> Callable[[Any], Any]:
    """Make a rule of a method; after it, still nobody writes where others do."""

    def made(method: Any) -> Any:
        @wraps(method)
        def counted(self: "Life", *args: Any, **chosen: Any) -> None:
            type(self).steps += 1
            method(self, *args, **chosen)
            assert self.cluster.nodes.san.broken == []

        return rule(**choices)(counted)

    return made


LOCKLESS = "OP_NODE_SET_PARAMS"
"""It takes no lock: who says that a node is off waits for nobody."""


class Life(RuleBasedStateMachine):
    """A simulated cluster to which anything happens.

    Attributes
    ----------
    directory
        Where clusters keep their files; each has a directory of its own.
    steps
        How many rules were carried out, in all lives together.
    succeeded
        Opcodes of the jobs that succeeded, and how many of each.
    upset
        Whether a mishap befell anything since the last quiet moment.
    peace
        Whether no mishap befalls this life at all.
    called
        Names of instances by uuid, as far as one knows.
    shaken
        Nodes whose disks or guests may have suffered from one since then.
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
        self.peace = self.upset = False
        self.spoilt: set[str] = set()
        self.lost: set[str] = set()
        self.epochs: dict[str, int] = {}
        self.called: dict[str, str] = {}

    def build(self) -> None:
        """Start a cluster that nothing is in yet."""
        path = self.directory / f"{next(self.numbers)}"
        ticks = count()
        builder = ClusterBuilder(len(NODES)).node(GUEST_NODE, GROUPS[1])
        given: dict[str, Any] = {
            "volume_group_name": GROUP,
            "gluster_storage_dir": GLUSTER_DIR,
            "diskparams": {"rbd": {"pool": CEPH_POOL}},
        }
        whole = replace(builder.objects["cluster"], **given)
        builder.objects["cluster"] = whole
        self.cluster = self.loop.run(SimCluster.start(path, builder))
        self.cluster.clock = lambda: 1000.0 + next(ticks) / 1000
        self.expected.nodes = dict.fromkeys(NODES, GROUPS[0]) | {GUEST_NODE: GROUPS[1]}
        for name, node in self.cluster.nodes.nodes.items():
            node.machine.size = MEMORY
            node.machine.busy = partial(comparing.memory, self.cluster, name)
        self.loop.run(self.cluster.crash())
        self.loop.run(self.cluster.boot())
        self.learnt = max(self.cluster.engine.jobs, default=0)

    # Quiet moments.

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
        self.upset = False
        self.failed = False

    def check_held(self) -> None:
        """Compare what nodes hold; what a mishap spoilt may be due still."""
        held, due = comparing.held(self.cluster), comparing.due(self.cluster.config)
        if not self.shaken:
            off = tuple(f"{node} " for node in self.expected.offline)
            assert {it for it in held - due if not it.startswith(off)} <= self.spoilt
            assert {it for it in due - held if not it.startswith(off)} <= self.lost
        self.spoilt, self.lost = held - due, due - held

    def teardown(self) -> None:
        """Compare once more, with what the next master reads."""
        try:
            if not self.failed:
                self.rest()
                self.next_master()
                self.rest()
                self.loop.run(self.cluster.stop())
                rmtree(self.cluster._directory)
        finally:
            self.loop.close()

    def next_master(self) -> None:
        """Kill the master; the next one takes over. Steps on their way come late."""
        self.cluster.nodes.hold = None
        self.loop.run(self.cluster.crash())
        self.loop.run(self.cluster.boot())

    async def quiet(self) -> None:
        """Let late steps arrive, give nodes their power, and wait for all jobs."""
        self.cluster.nodes.hold = None
        for event in self.late:
            event.set()
        self.late.clear()
        for node in self.dark - self.expected.offline:
            self.cluster.nodes.nodes[node].boot()
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
        self.waiting.clear()
        engine = self.cluster.engine
        jobs = [engine.job(one) for one in engine.jobs if one > self.learnt]
        self.learnt = max(engine.jobs, default=0)
        for op in sorted((op for job in jobs for op in _tried(job)), key=_end):
            self.note(op.input, op)
        self.expected.believe(self.cluster.config, comparing.exports(self.cluster))
        for name in [key for key in self.expected.disks if key.startswith("disk")]:
            found = self.cluster.config.called(Disk, name)
            assert len(found) == 1, f"disk {name} was made, and is not there"
            self.expected.look_up(name, found[0].uuid)
        self.called = {it.uuid: it.name for it in self.cluster.config.all(Instance)}
        self.find_nameless()
        self.expected.left_behind(self.cluster.config, comparing.places(self.cluster))
        self.format()

    def find_nameless(self) -> None:
        """Learn the uuids of disks that nobody named, by what they hold."""
        for disk in self.expected.nameless:
            wanted = (disk.name, disk.size, disk.template)
            found = [
                it.uuid
                for it in self.cluster.config.all(Disk)
                if it.uuid not in self.expected.disks
                and (it.name, it.size, it.dev_type) == wanted
                and self.may_hold(it.uuid, disk.writes)
            ]
            assert found, f"a disk without a name is not there: {disk}"
            self.expected.disks[found[0]] = disk
        self.expected.nameless.clear()

    def may_hold(self, uuid: str, writes: list[str]) -> bool:
        """Whether a disk holds one of some data; a disk of none may hold anything."""
        held = set(comparing.data_of(self.cluster, uuid))
        return not writes or not held.isdisjoint(writes)

    def note(self, opcode: dict[str, Any], op: Op) -> None:
        """Learn how one operation ended; where nothing went wrong, none fails.

        It is refused before it begins, or it succeeds: others that were under way got
        their locks before or after it.
        """
        self.expected.removes(opcode, op)
        if op.status == "success":
            self.note_success(opcode, op)
            return
        error = from_json(op.error)
        assert "internal error" not in str(error)
        if self.peace:
            late = isinstance(error, Conflict | Stale) or op.cursor
            # Of two changes of one node, which wait for nobody, one may say no.
            late = late and not (opcode["OP_ID"] == LOCKLESS and not op.cursor)
            told = f"{op.summary} failed where nothing went wrong: {error!r}"
            assert isinstance(error, Refused), told
            assert not late, told
        if opcode["OP_ID"] == "OP_DISK_GROW" and not isinstance(error, Refused):
            self.expected.grew(opcode["disk"])
        if opcode["OP_ID"] == "OP_BACKUP_REMOVE" and not isinstance(error, Refused):
            assert self.upset, f"{op.summary} stopped half-way: {op.error}"
            self.expected.doubt(opcode)  # on no record: it is gone, or it is not
        if op.committed_to():
            assert self.upset, f"{op.summary} stopped half-way: {op.error}"
            self.expected.doubt(opcode)

    def note_success(self, opcode: dict[str, Any], op: Op) -> None:
        """Learn what an operation has done."""
        self.succeeded[opcode["OP_ID"]] += 1
        self.expected.apply(opcode | self.who(opcode, op), op.result)
        if opcode["OP_ID"] == "OP_INSTANCE_RENAME":
            old, new = opcode["instance_name"], str(op.result)
            self.called = {
                uuid: new if name == old else name for uuid, name in self.called.items()
            }

    def who(self, opcode: dict[str, Any], op: Op) -> dict[str, str]:
        """Return the name of the instance that a job goes by the uuid of, if it does.

        The summary tells what it was called when the job was submitted.
        """
        uuid = str(opcode.get("instance_name"))
        if not uuid.startswith("uuid-"):
            return {}
        told = op.summary.partition("(")[2].rstrip(")")
        return {"instance_name": self.called.get(uuid, told)}

    def mend(self) -> None:
        """Do with disks in quarantine what people do who have looked at them."""
        suspects = [it for it in self.cluster.config.all(Disk) if it.quarantine]
        for node in sorted(self.expected.offline) if suspects else ():
            self.power()
            self.done("NODE_SET_PARAMS", node_name=node, offline=False)
            self.expected.offline.discard(node)
        found = comparing.places(self.cluster)
        for disk in suspects:
            assert self.upset, disk.quarantine
            copies = found.get(comparing.place_of(disk.volume), ())
            whole = len(copies) == (len(disk.nodes) if disk.children else 1)
            if disk.uuid in self.expected.disks and whole:
                self.done("DISK_SET_PARAMS", disk=disk.uuid, lift_quarantine=True)
                continue
            if self.cluster.config.owner(disk):
                self.done("DISK_DETACH", disk=disk.uuid)
            if disk.adopted:  # it was there before, and stays
                self.done("DISK_FORGET", disk=disk.uuid, why="somebody else's")
            else:
                self.done("DISK_REMOVE", disk=disk.uuid, volume_is_ours=True)
            self.expected.forget(disk.uuid)
        comparing.clear_up(self.cluster, self.shaken | self.expected.offline)

    def power(self) -> None:
        """Give nodes their power back."""
        for node in self.dark:
            self.cluster.nodes.nodes[node].boot()
        self.dark.clear()

    def format(self) -> None:
        """Write to new disks, and see what was written to copies."""
        for uuid, disk in self.expected.disks.items():
            held = comparing.data_of(self.cluster, uuid)
            if held and not disk.writes:
                disk.writes = [f"first {next(self.fresh)}"]
                comparing.write(self.cluster, uuid, disk.writes[0])
            elif disk.copied and set(held) & set(disk.writes):
                disk.writes = [one for one in disk.writes if one in held][-1:]
            disk.copied, disk.writes = False, disk.writes[-1:]

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
                assert self.upset or not expected.up or expected.asleep, name
            else:
                assert where == right, name
                assert expected.up, name
            expected.asleep = expected.up and where == []
        assert found == {}

    def ask(self, op: str, **fields: Any) -> None:
        """Submit a job; nobody waits for it yet."""
        if len(self.waiting) >= MOST_WAITING:
            self.rest()
        number = self.loop.run(self.cluster.submit(f"OP_{op}", **fields))
        self.waiting.append(number)

    def done(self, op: str, **fields: Any) -> Any:
        """Do something that must succeed; what it means is said by who asks for it."""
        result = self.loop.run(self.cluster.run(f"OP_{op}", **fields))
        self.learnt = max(self.cluster.engine.jobs)
        return result

    def guests(self) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Return the processes of guests."""
        return comparing.guests(self.cluster)


def _tried(job: Job) -> Iterator[Op]:
    """Yield the operations of a job up to the one that failed."""
    for op in job.ops:
        yield op
        if op.status != "success":
            return


def _end(op: Op) -> Any:
    return op.end_timestamp
