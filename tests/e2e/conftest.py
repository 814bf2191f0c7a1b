# SPDX-License-Identifier: BSD-2-Clause
"""Clusters of processes; and the harbour, a small one that is copied for each fault."""

import asyncio
import io
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest
from msgspec import json

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster
from moorage.daemons.devcluster import Scratch
from moorage.jobs import Job
from moorage.model import Disk
from moorage.model.story import Event, shown
from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.scenarios import (
    LOST,
    MIRRORS,
    SCENARIOS,
    STORED,
    Scenario,
    cellar,
    harbour,
    pier,
)
from moorage.testing.state_snapshot import Picture, epochs, picture, renumbered
from support.deaths import Death, Watch


@pytest.fixture
def scratch_of() -> Iterator[Callable[[str], Scratch]]:
    """Return what makes a scratch cluster with some options; it ends with the test.

    Its path is short, whoever runs the tests: providers make Unix sockets beneath it,
    whose paths hold 107 bytes.
    """
    home, programs = Path(mkdtemp(prefix="mrg-")), Path(sys.executable).parent
    at = home / "c"
    hands = Typist({"PATH": f"{programs}:{os.environ['PATH']}"}, io.StringIO())

    def made(options: str) -> Scratch:
        hands.type(f"moorage up {at} {options}")
        return devcluster.read(at)

    try:
        yield made
    finally:
        if at.exists():
            devcluster.down(at)
        rmtree(home)


@dataclass(frozen=True)
class Reference:
    """How a request goes when nothing goes wrong.

    Attributes
    ----------
    deaths
        Where a master's death leaves something that no earlier one does.
    """

    scenario: Scenario
    before: Picture
    after: Picture
    points: list[str]
    calls: list[tuple[str, str]]
    commands: dict[str, int]
    writes: int
    deaths: list[Death]

    def check(self, cluster: SimCluster, job: Job, seen: Picture) -> None:
        """Fail unless the cluster is as before the request, or as after it."""
        unfinished = [job.id] if not job.finished else []
        assert not unfinished
        assert cluster.engine.locks.rows() == []
        assert cluster.nodes.san.broken == []
        side = self.after if job.status == "success" else self.before
        differences = seen.differences(side)
        # What was drawn for nothing makes later uuids others.
        anew = renumbered(seen).differences(renumbered(side))
        differences = min(differences, anew, key=len)
        if any("Warning" in str(entry[3]) for op in job.ops for entry in op.log):
            leftover = ("attached ", "held ")  # it says so, and nobody uses it
            half = (".new/", ".old/")  # of an export: listed, and no export
            differences = [
                one
                for one in differences
                if not one.startswith(leftover) and not any(x in one for x in half)
            ]
        told = _left(job)
        differences = [
            one for one in differences if not any(name in one for name in told)
        ]
        assert differences == []


def _left(job: Job) -> list[str]:
    """Return the volumes that a certification says it could not remove."""
    results = [op.result for op in job.ops if isinstance(op.result, dict)]
    return [name for result in results for name in result.get("left", ())]


@dataclass
class Harbour:
    """The cluster that requests are tried on.

    Attributes
    ----------
    base
        Stopped; each trial gets a twin of it.
    prepare
        What is done to a twin before it is tried on.
    """

    base: SimCluster
    before: Picture
    directory: Path
    prepare: Callable[[SimCluster], None] = lambda _: None
    known: dict[str, Reference] = field(default_factory=dict)
    numbers: count = field(default_factory=count)

    @property
    def next_job(self) -> int:
        """Number of the first job that is submitted in a trial."""
        return int(self.base.store.records["queue", "last"]) + 1

    async def fresh(self) -> SimCluster:
        """Return a cluster to break."""
        cluster = await self.base.twin(self.directory / f"{next(self.numbers)}")
        self.prepare(cluster)
        return cluster

    async def reference(self, scenario: Scenario) -> Reference:
        """Return how a request goes when nothing goes wrong."""
        if scenario.name not in self.known:
            self.known[scenario.name] = await self._measured(scenario)
        return self.known[scenario.name]

    async def _measured(self, scenario: Scenario) -> Reference:
        cluster = await self.fresh()
        version = cluster.store.version
        watch = Watch(cluster)
        await cluster.run(scenario.op_id, **scenario.fields)
        machines = {name: node.machine for name, node in cluster.nodes.nodes.items()}
        found = Reference(
            scenario,
            self.before,
            await picture(cluster),
            cluster.points,
            cluster.nodes.calls,
            {name: len(machine.ran) for name, machine in machines.items()},
            cluster.store.version - version,
            list(watch.deaths.values()),
        )
        assert cluster.nodes.san.broken == []
        assert found.after.missing == set()
        assert found.after.misplaced == found.before.misplaced
        await cluster.stop()
        return found

    async def crashed(self, cluster: SimCluster, scenario: Scenario) -> None:
        """Submit the request to a cluster that is going to crash."""
        try:
            number = await cluster.submit(scenario.op_id, **scenario.fields)
            await cluster.finished(number)
        except Crash:
            await cluster.crash()
        else:
            raise AssertionError("it did not crash")

    async def taken_over(self, cluster: SimCluster) -> Job:
        """Start a new master, and wait for the job that the old one left."""
        await cluster.boot()
        return await cluster.finished(self.next_job)

    async def checked(self, cluster: SimCluster, job: Job, told: Reference) -> None:
        """Fail unless the cluster is as before the request, or as after it."""
        seen = await picture(cluster)
        told.check(cluster, job, seen)
        assert await mistold(cluster) == []
        now = epochs(cluster.config)
        fallen = {
            uuid
            for uuid, epoch in epochs(self.base.config).items()
            if now.get(uuid, epoch) < epoch
        }
        assert fallen == set()
        await cluster.stop()
        rmtree(cluster._directory)


async def mistold(cluster: SimCluster) -> list[str]:
    """Return the disks whose stories do not lead to what their records say."""
    config = cluster.config
    uuids = {disk.uuid for disk in config.all(Disk)}
    uuids |= set(cluster.config_store.stories.ended)
    return [
        uuid
        for uuid in sorted(uuids)
        if json.decode(json.encode(shown(config, config.objects.get(uuid))))
        != replayed(await cluster.config_store.story(uuid))
    ]


def replayed(events: list[Event]) -> dict[str, object]:
    """Return the fields of a disk after all that happened to it."""
    state: dict[str, object] = {}
    for event in events:
        state |= {name: new for name, (_, new) in event.changed.items()}
    return {name: value for name, value in state.items() if value is not None}


def _moored(make: Callable[[Path], Awaitable[SimCluster]], directory: Path) -> Harbour:
    async def built() -> tuple[SimCluster, Picture]:
        cluster = await make(directory / "base")
        before = await picture(cluster)
        for number in list(cluster.engine.jobs):  # every master would read them all
            await cluster.engine.queue.archive(number)
        await cluster.stop()
        return cluster, before

    return Harbour(*asyncio.run(built()), directory)


async def _with_a_forgotten_volume(directory: Path) -> SimCluster:
    """Return the harbour, with a volume that no disk is in."""
    cluster = await harbour(directory)
    cluster.nodes.san.volumes[LOST] = {"size": 64, "provider": "san", "data": ""}
    return cluster


@pytest.fixture(scope="session")
def quay(in_memory: Path) -> Harbour:
    """Return the harbour."""
    return _moored(_with_a_forgotten_volume, in_memory / "harbour")


@pytest.fixture(scope="session")
def stores(in_memory: Path) -> Harbour:
    """Return a cluster with disks of LVM, Ceph and Gluster."""
    return _moored(cellar, in_memory / "cellar")


@pytest.fixture(scope="session")
def mirrored(in_memory: Path) -> Harbour:
    """Return the cluster with mirrored disks, to be tried on in the same way."""
    return _moored(pier, in_memory / "pier")


REQUESTS = [
    *(("quay", one) for one in SCENARIOS),
    *(("mirrored", one) for one in MIRRORS),
    *(("stores", one) for one in STORED),
]
"""Every kind of request, with the fixture of the cluster that it is made for."""


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Harbour:
    """Return the cluster of a request."""
    found: Harbour = request.getfixturevalue(request.param)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try each kind of request where a test takes one, on the cluster it is for."""
    if {"port", "scenario"} <= set(metafunc.fixturenames):
        names = [f"{where}-{one.name.replace(' ', '-')}" for where, one in REQUESTS]
        metafunc.parametrize(
            ("port", "scenario"), REQUESTS, indirect=["port"], ids=names
        )
