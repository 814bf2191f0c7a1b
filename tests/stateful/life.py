# SPDX-License-Identifier: BSD-2-Clause
"""The life of one simulated cluster: requests under way, and quiet moments.

Requests are submitted and left alone: several are under way when the next thing
happens, at any turn of the event loop. :meth:`Life.rest` waits for all of them and
compares the cluster with what is expected.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
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
from moorage.jobs.job import Op
from moorage.model import Disk, Instance, pair_of
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP
from moorage.testing.rbd import POOL as CEPH_POOL
from moorage.testing.state_snapshot import epochs
from moorage.testing.stored import GLUSTER_DIR

NODES = ("node1", "node2", "node3", "node4")
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

    def build(self) -> None:
        """Start a cluster that nothing is in yet."""
        path = self.directory / f"{next(self.numbers)}"
        ticks = count()
        builder = ClusterBuilder(len(NODES))
        given: dict[str, Any] = {
            "volume_group_name": GROUP,
            "gluster_storage_dir": GLUSTER_DIR,
            "diskparams": {"rbd": {"pool": CEPH_POOL}},
        }
        whole = replace(builder.objects["cluster"], **given)
        builder.objects["cluster"] = whole
        self.cluster = self.loop.run(SimCluster.start(path, builder))
        self.cluster.nodes.san.slow_sync = 2
        self.cluster.clock = lambda: 1000.0 + next(ticks) / 1000
        self.loop.run(self.cluster.crash())
        self.loop.run(self.cluster.boot())

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
            assert held - due <= self.spoilt
            assert due - held <= self.lost
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
        jobs = [self.cluster.engine.job(number) for number in self.waiting]
        self.waiting.clear()
        for op in sorted((op for job in jobs for op in job.ops), key=_end):
            self.note(op.input, op)
        self.expected.believe(self.cluster.config, comparing.exports(self.cluster))
        for name in [key for key in self.expected.disks if key.startswith("disk")]:
            found = self.cluster.config.called(Disk, name)
            assert len(found) == 1, f"disk {name} was made, and is not there"
            self.expected.look_up(name, found[0].uuid)
        self.format()

    def note(self, opcode: dict[str, Any], op: Op) -> None:
        """Learn how one operation ended; where nothing went wrong, none fails.

        It is refused before it begins, or it succeeds: others that were under way got
        their locks before or after it.
        """
        if op.status == "success":
            self.succeeded[opcode["OP_ID"]] += 1
            self.expected.apply(opcode, op.result)
            return
        error = from_json(op.error)
        assert "internal error" not in str(error)
        if self.peace:
            late = isinstance(error, Conflict | Stale) or op.cursor
            told = f"{op.summary} failed where nothing went wrong: {error!r}"
            assert isinstance(error, Refused), told
            assert not late, told
        if op.committed_to():
            assert self.upset, f"{op.summary} stopped half-way: {op.error}"
            self.expected.doubt(opcode)

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
            volume = comparing.place_of(disk.volume)
            if disk.uuid in self.expected.disks and volume in found:
                self.done("DISK_SET_PARAMS", disk=disk.uuid, lift_quarantine=True)
                continue
            if self.cluster.config.owner(disk):
                self.done("DISK_DETACH", disk=disk.uuid)
            self.done("DISK_REMOVE", disk=disk.uuid)
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

    # Small parts of requests.

    @property
    def taken(self) -> list[str]:
        """The disks that an instance has, as it was in the last quiet moment."""
        return sorted(u for it in self.expected.instances.values() for u in it.disks)

    @property
    def free(self) -> list[str]:
        """The disks that belonged to nobody then."""
        return sorted(self.expected.disks.keys() - set(self.taken))

    @property
    def roomy(self) -> bool:
        """Whether more disks may be made."""
        return len(self.expected.disks) < MOST_DISKS

    def new(self, kind: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a disk that is made with an instance."""
        rest = {key: kind[key] for key in kind if key != "disk_template"}
        number = next(self.fresh)
        return {"name": f"disk{number}", "size": 32 * (number % 8 + 1), **rest}

    @staticmethod
    def place(number: int, kind: dict[str, Any]) -> dict[str, Any]:
        """Return what a disk is made as, with a node or two where it wants them."""
        template, node = kind.get("disk_template"), NODES[number % len(NODES)]
        if template == "drbd":
            first = "" if number % 3 else NODES[(number + 1) % len(NODES)]
            return {**kind, "node": f"{first}:{node}"}
        return {**kind, **({"node": node} if template in LOCAL else {})}

    def partner(self, name: str, node: str) -> str:
        """Return the node that keeps an instance's second copies, or else another."""
        if not self.cluster.config.knows(Instance, name):
            return node
        config = self.cluster.config
        instance = config.instance(name)
        pairs = filter(None, map(pair_of, config.disks_of(instance)))
        others = [one.other(instance.primary_node) for one in pairs]
        return config.node(others[0]).name if others else node

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
        disks = among if among and number % 4 else sorted(self.expected.disks)
        return disks[number % len(disks)]

    def ask(self, op: str, **fields: Any) -> None:
        """Submit a job; nobody waits for it yet."""
        if len(self.waiting) >= MOST_WAITING:
            self.rest()
        number = self.loop.run(self.cluster.submit(f"OP_{op}", **fields))
        self.waiting.append(number)

    def done(self, op: str, **fields: Any) -> Any:
        """Do something that must succeed."""
        return self.loop.run(self.cluster.run(f"OP_{op}", **fields))

    def guests(self) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Return the processes of guests."""
        return comparing.guests(self.cluster)


def _end(op: Op) -> Any:
    return op.end_timestamp
