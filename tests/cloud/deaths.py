# SPDX-License-Identifier: BSD-2-Clause
"""Volumes of a cloud of processes, of which one is killed while verbs are under way."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from django.db import connection
from django.db.models import QuerySet
from installation import Cloud, Town
from site_of_people import COMPUTE, VOLUME, Person, Site
from towns import PROVIDER

from moorage_cloud.models import (
    Backend,
    Operation,
    Server,
    StorageDomain,
    Volume,
    VolumeType,
)
from moorage_cloud.verbs import quota
from moorage_cloud.work import Doors
from support.postgres import Postgres

AFTER = {"attach": "in-use", "detach": "available", "delete": "deleted"}
"""What a volume is when a verb was done."""
BYTES = 16
AT_ONCE = 3
"""Volumes that something is done with while processes are killed."""
TOGETHER = 3
"""How many processes are killed meanwhile, at most."""
LONGEST = 1.5
"""Seconds after the requests in which a process is killed, at most."""
PATIENCE = 90.0
"""Seconds until everything has ended."""


class Records:
    """The service's records of two clusters; looks like a quay to a site of people."""

    def __init__(self, towns: Mapping[str, Town]) -> None:
        domain = StorageDomain.objects.create(name="shared")
        self.servers: dict[str, Server] = {}
        for name, town in towns.items():
            backend = Backend.objects.create(
                clustername=name,
                address="localhost",
                port=town.port,
                username="top",
                password="secret",  # noqa: S106 - of the test's own user
                ca=str(town.ca),
                features=["moorage-disks"],
            )
            domain.backends.add(backend)
            for number in "12":
                self.servers[f"{name}{number}"] = Server.objects.create(
                    name=f"{name}{number}",
                    instance=f"snf-{name}{number}",
                    userid="anna",
                    project="red",
                    backend=backend,
                )
        VolumeType.objects.create(
            name="fast",
            disk_template=f"ext_{PROVIDER}",
            domain=domain,
            is_default=True,
        )


@dataclass
class Wish:
    """What somebody wants of a volume, and what it was before.

    Attributes
    ----------
    before
        Its status.
    text
        The first bytes that it has; None for a volume without data.
    status
        Of the answer; 0 if none came.
    """

    volume: Volume
    verb: str
    before: str
    text: bytes | None
    ask: Callable[[], int] = field(repr=False)
    status: int = 0


@dataclass
class Death:
    """Somebody is killed `moment` s after the wishes, and started `pause` s later."""

    victim: str
    moment: float
    pause: float
    kill: Callable[[], None] = field(repr=False)
    start: Callable[[], None] = field(repr=False)

    def happen(self) -> None:
        time.sleep(self.moment)
        self.kill()
        time.sleep(self.pause)
        self.start()


class Deaths:
    """The cloud, what can be killed of it, and an account.

    Attributes
    ----------
    kills
        How often each was killed.
    ended
        How often each verb ended as what: ``attach: in-use``.
    """

    def __init__(
        self,
        cloud: Cloud,
        towns: Mapping[str, Town],
        images: Path,
        random: Random,
        postgres: Postgres | None,
    ) -> None:
        self._cloud, self._towns, self._images = cloud, towns, images
        self._random = random
        self._site = Site(Records(towns))
        self._pool = ThreadPoolExecutor(AT_ONCE + TOGETHER)
        self.kills: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self._doors = Doors()
        self._web, self._workers = cloud.web(), [cloud.worker()]
        self._victims = ["web", "worker", "master", "door"]
        self._postgres = postgres
        if postgres:
            self._workers.append(cloud.worker())
            self._victims.append("database")

    @property
    def _anna(self) -> Person:
        return self._site.anna

    def _ask(self, method: str, path: str, body: object = None) -> int:
        try:
            return self._cloud.ask(method, path, self._anna.token, body).status
        except OSError:
            return 0  # it died, or does not live yet

    # -- a death -----------------------------------------------------------------------

    def until(self, kills: int) -> None:
        """Go on until so many were killed: each of them once, then each once more."""
        deck: list[str] = []
        while self.kills.total() < kills:
            deck = deck or self._random.sample(self._victims, len(self._victims))
            number = self._random.randint(1, TOGETHER)
            self._round(deck[:number])
            del deck[:number]

    def _round(self, victims: Sequence[str]) -> None:
        """Wish for something, kill somebody meanwhile, and look at what came of it."""
        wishes = self._wishes()
        connection.close()
        deaths = [self._death(one) for one in victims]
        asked = [self._pool.submit(one.ask) for one in wishes]
        dying = [self._pool.submit(one.happen) for one in deaths]
        for death in dying:
            death.result()
        for one, answer in zip(wishes, asked, strict=True):
            one.status = answer.result()
        for line in (*deaths, *wishes):
            print(f"- {line}")  # noqa: T201 - shown if it fails
        self._end_everything()
        for one in wishes:
            self._check(one, "master" in victims)
        assert list(quota.drifts()) == []

    def _death(self, victim: str) -> Death:
        """Return how somebody will be killed, and started again."""
        self.kills[victim] += 1
        moment = self._random.triangular(0, LONGEST, 0)
        pause = self._random.choice((0, 0.3))
        town = self._towns[self._random.choice("ab")]
        worker = self._random.choice(self._workers)
        match victim:
            case "web":
                return Death(victim, moment, pause, self._web.kill, self._start_web)
            case "worker":
                return Death(victim, moment, pause, worker.kill, worker.start)
            case "master":
                return Death(victim, moment, 0, town.kill_master, town.start_master)
            case "door":
                return Death(victim, moment, pause, town.kill_door, town.start_door)
        assert self._postgres
        server = self._postgres
        return Death(victim, moment, pause, server.kill, server.start)

    def _start_web(self) -> None:
        self._web.start()
        self._cloud.await_web()

    def _end_everything(self) -> None:
        end = time.monotonic() + PATIENCE
        under_way = Operation.objects.filter(ended=None)
        while under_way.exists():
            assert time.monotonic() < end, list(under_way.values())
            time.sleep(0.1)

    # -- wishes ------------------------------------------------------------------------

    def _wishes(self) -> list[Wish]:
        """Return something to be done with each of some volumes."""
        known = list(self._live())
        while len(known) < AT_ONCE:
            path = f"{VOLUME}/{self._site.red.pk}/volumes"
            assert self._ask("POST", path, {"volume": {"size": 1}}) == 202
            known = list(self._live())
        return [self._wish(one) for one in self._random.sample(known, AT_ONCE)]

    def _live(self) -> QuerySet[Volume]:
        known = Volume.objects.filter(deleted=False).order_by("pk")
        return known.select_related("attachment__server")

    def _wish(self, volume: Volume) -> Wish:
        server = volume.server
        verb = self._random.choice(("attach", "attach", "delete"))
        if server or volume.status == "error_deleting":
            verb = "detach" if server else "delete"
        text = self._write(volume)
        if verb == "delete":
            path = f"{VOLUME}/{self._site.red.pk}/volumes/{volume.uuid}"
            ask = partial(self._ask, "DELETE", path)
        elif server:
            ask = partial(self._ask, "DELETE", f"{_places(server)}/{volume.uuid}")
        else:
            server = self._random.choice(list(self._site.docks.servers.values()))
            body = {"volumeAttachment": {"volumeId": str(volume.uuid)}}
            ask = partial(self._ask, "POST", _places(server), body)
        return Wish(volume, verb, volume.status, text, ask)

    def _image(self, volume: Volume) -> Path:
        return self._images / volume.backend_volume_uuid

    def _write(self, volume: Volume) -> bytes | None:
        """Let a guest write to a volume that has data; return what it has."""
        if not volume.initialized:
            return None
        with self._image(volume).open("r+b") as image:
            if volume.server:
                image.write(self._random.randbytes(BYTES))
                image.seek(0)
            return image.read(BYTES)

    # -- what came of it ---------------------------------------------------------------

    def _check(self, wish: Wish, undone: bool) -> None:
        """Hold a volume against what it was, and what it was to become.

        What a cluster's master began when it died may have been `undone`.
        """
        found = self._again(wish.volume)
        ends = {wish.before, AFTER[wish.verb]}
        if undone and wish.verb == "delete":
            ends.add("error_deleting")  # nothing is lost, and it is repeated next
        assert found.status in ends, found.fault
        self.ended[f"{wish.verb}: {found.status}"] += 1
        done = found.status == AFTER[wish.verb]
        if not done and wish.status in {200, 202}:
            operation = found.operations.latest("pk")
            assert undone, operation.why
            assert operation.result == "failed"
            assert found.fault == operation.why
            assert operation.why
        if not done and wish.status:
            assert wish.status in {200, 202, 503}
        self._check_data(found, wish)
        where = [
            (backend.clustername, told.instance)
            for backend in Backend.objects.all()
            if (told := self._doors(backend).disk(found.backend_volume_uuid))
        ]
        server = found.server
        there = [(server.backend.clustername, server.instance)] if server else []
        assert where == there

    def _check_data(self, found: Volume, wish: Wish) -> None:
        image = self._image(found)
        assert image.exists() == (found.initialized and not found.deleted)
        if wish.text is not None and not found.deleted:
            with image.open("rb") as file:
                assert file.read(BYTES) == wish.text

    def _again(self, volume: Volume) -> Volume:
        known = Volume.objects.select_related("attachment__server__backend")
        return known.get(pk=volume.pk)

    def clear(self) -> None:
        """Delete all volumes; nothing of them is left anywhere."""
        for one in self._live():
            if one.server:
                path = f"{_places(one.server)}/{one.uuid}"
                assert self._ask("DELETE", path) == 202
        self._end_everything()
        for one in self._live():
            path = f"{VOLUME}/{self._site.red.pk}/volumes/{one.uuid}"
            assert self._ask("DELETE", path) == 202
        self._end_everything()
        assert not self._live().exists()
        assert list(self._images.iterdir()) == []
        assert not any(self._doors(one).disks() for one in Backend.objects.all())
        assert not any(quota.usage(self._site.red.pk).values())

    def close(self) -> None:
        """Hang up."""
        self._pool.shutdown()
        self._doors.close()
        connection.close()


def _places(server: Server) -> str:
    return f"{COMPUTE}/servers/{server.uuid}/os-volume_attachments"
