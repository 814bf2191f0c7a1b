# SPDX-License-Identifier: BSD-2-Clause
"""A whole cluster in this process: everything real but the nodes."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any

from moorage import ops
from moorage.errors import MoorageError, from_json
from moorage.jobs import Effects, Engine, Job, journal
from moorage.jobs.job import encode
from moorage.model import Change, Cluster, Config, Disk, Instance, Node, NodeGroup
from moorage.ops import hooks
from moorage.store import ConfigStore, MemoryStore, create

from .lvm import GROUP
from .nodes import SimNodes
from .storage import San
from .stored import SHARED_DIR

_OTHERS_TURNS = 20
"""How often others get their turn while the planner thinks."""


class Crash(BaseException):
    """The master process dies here."""


async def _pass(_name: str) -> None:
    """Pass a point without interruption."""


async def _at_once(decide: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Decide without a thread: what happens must not depend on who is faster.

    As with a thread, others go on meanwhile, and get far.
    """
    for _ in range(_OTHERS_TURNS):
        await asyncio.sleep(0)
    return decide()


class ClusterBuilder:
    """Builds the first configuration of a cluster, object by object.

    Every uuid is the object's name, so tests can be read.
    """

    def __init__(self, nodes: int = 3, group: str = "default") -> None:
        self.objects: dict[str, Any] = {}
        self._put(NodeGroup(uuid=group, name=group))
        for number in range(1, nodes + 1):
            self.node(f"node{number}", group)
        self._put(
            Cluster(
                uuid="cluster",
                cluster_name="test",
                master_node="node1",
                file_storage_dir="/local",
                shared_file_storage_dir=SHARED_DIR,
                volume_group_name=GROUP,
            )
        )

    def node(self, name: str, group: str = "default", **more: Any) -> "ClusterBuilder":  # noqa: ANN401
        """Add a node, and its group if need be."""
        if group not in self.objects:
            self._put(NodeGroup(uuid=group, name=group))
        ip = f"127.0.0.{len(self.objects) + 1}"
        away = more.get("offline") or more.get("drained")
        more = {"master_candidate": not away} | more
        self._put(
            Node(
                uuid=name,
                name=name,
                primary_ip=ip,
                secondary_ip=ip,
                group=group,
                **more,
            )
        )
        return self

    def disk(self, name: str, template: str = "ext", **more: Any) -> "ClusterBuilder":  # noqa: ANN401
        """Add a disk; an ``ext`` one of the provider *san* unless told otherwise."""
        fields: dict[str, Any] = {
            "logical_id": ("san", f"vol-{name}"),
            "params": {"provider": "san"},
            "size": 1024,
            "group": "default",
            "last_node": "node1",
        }
        fields |= {"uuid": name, "name": name, "dev_type": template} | more
        self._put(Disk(**fields))
        return self

    def instance(
        self,
        name: str,
        node: str = "node1",
        disks: tuple[str, ...] = (),
        **more: Any,  # noqa: ANN401
    ) -> "ClusterBuilder":
        """Add an instance that has some of the disks."""
        self._put(
            Instance(uuid=name, name=name, primary_node=node, disks=disks, **more)
        )
        return self

    def change(self) -> Change:
        """Return everything as one change set."""
        return Change(tuple(self.objects.values()))

    def _put(self, entity: Any) -> None:  # noqa: ANN401
        self.objects[entity.uuid] = entity


class SimCluster:
    """A running cluster.

    Attributes
    ----------
    nodes
        The simulated nodes; they survive the master.
    points
        Name of every place that the engine passed where a crash must be survived.
    clock
        The time in seconds; it stands still.
    aside
        How operations that plan are decided: without a thread.
    hooked
        Whether hooks are run; most tests have none, and count calls.
    """

    def __init__(
        self, directory: Path, san: San | None = None, store: MemoryStore | None = None
    ) -> None:
        self.nodes = SimNodes(directory, san)
        self.store = store or MemoryStore()
        self._directory = directory
        self.points: list[str] = []
        self.crash_at: int | None = None
        self.engine: Engine
        self.config_store: ConfigStore
        self._fresh = count(1)
        self._crashed = asyncio.Event()
        self.hooked = False
        self.extra_point: Callable[[str], Awaitable[None]] = _pass
        self.clock: Callable[[], float] = lambda: 1000.0
        self.aside: Callable[[Callable[[], Any]], Awaitable[Any]] = _at_once

    @classmethod
    async def start(
        cls, directory: Path, builder: ClusterBuilder | None = None
    ) -> "SimCluster":
        """Make the cluster and its nodes, and start the master."""
        cluster = cls(directory)
        await cluster.make(builder or ClusterBuilder())
        return cluster

    async def make(self, builder: ClusterBuilder) -> None:
        """Make what the builder says, and start the master."""
        change = builder.change()
        await create(self.store, change)
        for entity in change.put:
            if isinstance(entity, Node):
                self.nodes.add(entity.name)
        await self.boot()

    async def twin(self, directory: Path) -> "SimCluster":
        """Return a second cluster, started in the very state of this one.

        Parameters
        ----------
        directory
            Where its nodes keep their files; it must not exist.
        """
        copytree(self._directory, directory, copy_function=copyfile)
        # Ten thousand twins are made of some clusters: this is five times a deepcopy.
        san, store = pickle.loads(pickle.dumps((self.nodes.san, self.store)))  # noqa: S301
        twin = SimCluster(directory, san, store)
        twin._fresh = count(1000)
        twin.hooked = self.hooked
        for name in self.nodes.nodes:
            twin.nodes.add(name)
        await twin.boot()
        return twin

    @property
    def config(self) -> Config:
        """The newest snapshot."""
        return self.config_store.config

    async def boot(self) -> None:
        """Start a master; it goes on with what an earlier one left."""
        self._crashed.clear()
        self.config_store, others = await ConfigStore.open(self.store)
        effects = Effects(
            clock=self._now,
            steady=self._now,
            sleep=self._sleep,
            fresh=lambda: f"uuid-{next(self._fresh):04}",
            point=self._point,
            aside=self.aside,
        )
        self.engine = Engine(
            self.config_store,
            self.nodes,
            ops.parse,
            effects,
            hooks.of if self.hooked else None,
        )
        await self.engine.start(others)

    async def stop(self) -> None:
        """Stop the master, with nothing under way on the nodes afterwards."""
        await self.engine.stop()
        await self.nodes.settle()

    async def submit(self, op_id: str, **fields: Any) -> int:  # noqa: ANN401
        """Submit a job of one operation."""
        return await self.engine.submit([{"OP_ID": op_id, **fields}])

    async def run(self, op_id: str, **fields: Any) -> Any:  # noqa: ANN401
        """Run one operation and return its result.

        Raises
        ------
        MoorageError
            What the job ended with.
        """
        job = await self.finished(await self.submit(op_id, **fields))
        error = job.ops[0].error
        if error is not None:
            raise from_json(error)
        return job.ops[0].result

    async def refused(self, op_id: str, **fields: Any) -> MoorageError:  # noqa: ANN401
        """Run one operation that must not succeed, and return its error."""
        try:
            result = await self.run(op_id, **fields)
        except MoorageError as error:
            return error
        raise AssertionError(f"{op_id} succeeded: {result}")

    async def at_once(self, *opcodes: dict[str, Any]) -> list[MoorageError]:
        """Submit jobs together; return what failed those of them that failed."""
        numbers = [await self.engine.submit([one]) for one in opcodes]
        jobs = await asyncio.gather(*(self.finished(number) for number in numbers))
        return [from_json(job.ops[0].error) for job in jobs if job.ops[0].error]

    async def finished(self, number: int) -> Job:
        """Wait for a job, or for the crash of the master."""
        crash = asyncio.create_task(self._crashed.wait())
        done = asyncio.create_task(self.engine.finished(number))
        await asyncio.wait({crash, done}, return_when=asyncio.FIRST_COMPLETED)
        for task in (crash, done):
            task.cancel()
        if self._crashed.is_set():
            raise Crash
        return self.engine.job(number)

    def recorded(self, number: int) -> Job:
        """Return a job as the store has it."""
        kinds = (journal.JOB, journal.TASKS)
        records = self.store.records
        there = {
            kind: {name: one for (is_, name), one in records.items() if is_ == kind}
            for kind in kinds
        }
        return next(job for job in journal.read(there) if job.id == number)

    def record(self, job: Job) -> None:
        """Put a job into the store past the master, whole, as a former version did."""
        for name in journal.names(job):
            self.store.records.pop((journal.TASKS, name), None)
        self.store.records[journal.JOB, str(job.id)] = encode(job)

    def die(self) -> None:
        """Let the master do nothing more from now on; :meth:`crash` follows."""
        self._crashed.set()
        for task in self.engine._running.values():  # noqa: SLF001
            task.cancel()

    async def crash(self) -> None:
        """End the master at once; what the nodes do goes on."""
        await self.engine.stop()

    async def _point(self, name: str) -> None:
        await self.extra_point(name)
        here = len(self.points)
        self.points.append(name)
        if here == self.crash_at:
            self.die()
            raise Crash(name)
        await asyncio.sleep(0)

    def _now(self) -> float:
        return self.clock()

    @staticmethod
    async def _sleep(_seconds: float) -> None:
        await asyncio.sleep(0)
