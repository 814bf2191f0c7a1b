# SPDX-License-Identifier: BSD-2-Clause
"""What requests to the cloud cost: creates, one volume, pages; with few and with many.

The web processes are real ones (``snf-manage serve``), on SQLite with durable commits,
asked over HTTP with a token, by four clients where it says so. CPU is that of all web
processes together, and each figure the least of all rounds: whatever else the machine
does, it adds.

The bars: at least 50 creates a second, quota and token checked; a page of 1,000 in
detail for at most 100 ms of CPU; and with 100,000 volumes each request for one, and
each page in whatever order, costs at most 1.5 times what it costs with 1,000. Attach
and detach are told: seconds until a guest of a simulated node has the disk, or not any
more.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.extend(
    str(Path(__file__).parents[1] / one) for one in ("tests", "tests/cloud")
)

from moorage.daemons import process
from support.rapi_process import free_port

FEW, MANY = 1_000, 100_000
CLIENTS, PROCESSES = 4, 2
PAGE = 1_000
CREATES, PAGE_CPU, GROWTH = 50.0, 0.100, 1.5
SORTED = ("created_at", "name", "status", "size", "updated_at", "id", "bootable")
BIN = Path(sys.executable).parent


class Filled(NamedTuple):
    """What there is in a database: who may ask, and for what.

    Attributes
    ----------
    volume
        One in the middle.
    server
        Empty where there are no clusters.
    """

    project: str
    token: str
    volume: str
    server: str


class Web(NamedTuple):
    """The web processes, and how to ask them."""

    pid: int
    port: int
    filled: Filled

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        """Return the answer's JSON."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {
            "X-Auth-Token": self.filled.token,
            "OpenStack-API-Version": "volume 3.71, compute 2.100",
            "Content-Type": "application/json",
        }
        text = None if body is None else json.dumps(body)
        try:
            link.request(method, path, text, headers)
            answer = link.getresponse()
            told = answer.read()
        finally:
            link.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise SystemExit(f"{method} {path}: {answer.status} {told[:300]!r}")
        return json.loads(told) if told else None

    def volumes(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        """Ask block storage."""
        root = f"/volume/v3/{self.filled.project}"
        return self.ask(method, f"{root}/volumes{path}", body)

    def create(self, number: int) -> Any:  # noqa: ANN401
        """Make a volume."""
        return self.volumes("POST", "", {"volume": {"size": 1, "name": f"new{number}"}})

    def cpu(self) -> float:
        """Return the CPU seconds of the web processes until now."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return sum(map(_cpu, (self.pid, *map(int, children.split()))))


def _cpu(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)


# -- what is asked ---------------------------------------------------------------------


def fill(number: int, towns: dict[str, tuple[int, str]]) -> Filled:
    """Make a database with so many volumes of one project, as the settings name it."""
    import django  # noqa: PLC0415 - the settings are named by then

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    from moorage_cloud import models  # noqa: PLC0415
    from moorage_cloud.identity import people, tokens  # noqa: PLC0415
    from moorage_cloud.identity.models import Role  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    project = people.add_project("red")
    user = people.add_user("anna", "a word that opens", project)
    people.grant(user, project, Role.MEMBER)
    domain = models.StorageDomain.objects.create(name="shared")
    kind = models.VolumeType.objects.create(
        name="fast", disk_template="ext_named", domain=domain, is_default=True
    )
    server = ""
    for name, (port, ca) in towns.items():
        backend = models.Backend.objects.create(
            clustername=name,
            address="localhost",
            port=port,
            username="top",
            password="secret",  # noqa: S106 - of this run's own clusters
            ca=ca,
            features=["moorage-disks"],
        )
        domain.backends.add(backend)
        made = models.Server.objects.create(
            name=name,
            instance=f"snf-{name}1",
            userid=user.pk,
            project=project.pk,
            backend=backend,
        )
        server = str(made.uuid)
    volumes = [
        models.Volume(
            name=f"v{one * 7919 % number}",
            userid=user.pk,
            project=project.pk,
            size=one % 50 + 1,
            volume_type=kind,
            status="available",
            metadata={"k": "v"},
        )
        for one in range(number)
    ]
    models.Volume.objects.bulk_create(volumes, batch_size=1000)
    token = tokens.sealed(tokens.new(user.pk, project.pk, ("password",)))
    return Filled(project.pk, token, str(volumes[number // 2].uuid), server)


@contextmanager
def web(
    directory: Path, number: int, towns: dict[str, tuple[int, str]]
) -> Iterator[Web]:
    """Serve a database with so many volumes."""
    directory.mkdir()
    conf, port = directory / "cloud.toml", free_port()
    conf.write_text(
        f'database = "{directory}/db"\nkey_file = "{directory}/key"\n'
        "[quota]\nvolumes = 1000000\ngigabytes = 100000000\n"
    )
    env = {
        **os.environ,
        "MOORAGE_CLOUD": str(conf),
        "DJANGO_SETTINGS_MODULE": "moorage_cloud.settings",
    }
    ours = [sys.executable, __file__, "--fill", str(number), json.dumps(towns)]
    told = subprocess.run(ours, env=env, check=True, stdout=subprocess.PIPE).stdout
    filled = Filled(*json.loads(told))
    with ExitStack() as stack, (directory / "log").open("w") as log:
        words = ["serve", "--bind", f"127.0.0.1:{port}", "--processes", str(PROCESSES)]
        running = [subprocess.Popen([BIN / "snf-manage", *words], env=env, stderr=log)]
        if towns:
            running.append(
                subprocess.Popen([BIN / "snf-manage", "worker"], env=env, stderr=log)
            )
        for one in running:
            stack.callback(one.wait)
            stack.callback(one.terminate)
        found = Web(running[0].pid, port, filled)
        if not process.wait_until(partial(_serves, found), 60):
            raise SystemExit(f"it does not serve: {(directory / 'log').read_text()}")
        yield found


def _serves(found: Web) -> bool:
    try:
        return bool(found.volumes("GET", "?limit=1"))
    except OSError:
        return False


# -- what is measured ------------------------------------------------------------------


def cost(served: Web, work: Callable[[], object], turns: int, rounds: int) -> float:
    """Return CPU seconds of one turn, the least of some rounds."""
    least = float("inf")
    for _ in range(PROCESSES * 2):
        work()  # whoever answers knows what it keeps
    for _ in range(rounds):
        before = served.cpu()
        for _ in range(turns):
            work()
        least = min(least, (served.cpu() - before) / turns)
    return least


def works(served: Web) -> dict[str, tuple[Callable[[], object], int]]:
    """Return what is asked, and how often in a round."""
    one = f"/{served.filled.volume}"
    page = f"/detail?limit={PAGE}"
    name = {"volume": {"description": "other"}}
    found: dict[str, tuple[Callable[[], object], int]] = {
        "show": (partial(served.volumes, "GET", one), 30),
        "find by name": (partial(served.volumes, "GET", "/detail?name=v7"), 30),
        "update": (partial(served.volumes, "PUT", one, name), 30),
        "create": (partial(served.create, 0), 30),
        "page": (partial(served.volumes, "GET", page), 5),
    }
    for key in SORTED:
        path = f"{page}&sort={key}:asc"
        found[f"by {key}"] = (partial(served.volumes, "GET", path), 5)
    return found


def creates(served: Web) -> tuple[float, float]:
    """Return creates a second of four clients, by the clock and by CPU."""
    each = 25
    before, began = served.cpu(), time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(served.create, range(CLIENTS * each)))
    took, cpu = time.perf_counter() - began, served.cpu() - before
    return CLIENTS * each / took, CLIENTS * each / cpu * PROCESSES


def attaches(served: Web, turns: int) -> tuple[float, float]:
    """Return seconds from the request until the guest has a disk, or not any more."""
    volume = served.create(0)["volume"]["id"]
    path = f"/compute/v2.1/servers/{served.filled.server}/os-volume_attachments"
    body = {"volumeAttachment": {"volumeId": volume}}
    least = [float("inf"), float("inf")]
    for _ in range(turns):
        for number, (method, where, given, status) in enumerate(
            (
                ("POST", path, body, "in-use"),
                ("DELETE", f"{path}/{volume}", None, "available"),
            )
        ):
            began = time.perf_counter()
            served.ask(method, where, given)
            while served.volumes("GET", f"/{volume}")["volume"]["status"] != status:
                time.sleep(0.02)
            least[number] = min(least[number], time.perf_counter() - began)
    return least[0], least[1]


# -- the run ---------------------------------------------------------------------------


def main() -> int:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--many", type=int, default=MANY)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fill:
        number, towns = asked.fill
        print(json.dumps(fill(int(number), json.loads(towns))))
        return 0
    with ExitStack() as stack:
        at = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="moorage-bench-"))
        )
        held = [_sizes(at, asked.many, asked.rounds), _attached(at)]
    return 0 if all(held) else 1


def _sizes(at: Path, many: int, rounds: int) -> bool:
    """Print what requests cost with few and with many volumes."""
    with web(at / "few", FEW, {}) as few, web(at / "many", many, {}) as big:
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; ms of CPU")
        print(f"{'':16}{FEW:>10,}{many:>10,}{'ratio':>8}{'bar':>6}")
        held = []
        for (name, (least, turns)), (most, _) in zip(
            works(few).items(), works(big).values(), strict=True
        ):
            costs = [cost(few, least, turns, rounds), cost(big, most, turns, rounds)]
            held.append(_told(name, *costs))
        clock, cpu = max(creates(big) for _ in range(rounds))
    enough = max(clock, cpu) >= CREATES
    words = f"{clock:.0f} creates a second by {CLIENTS} clients on this machine now"
    print(f"{words}, {cpu:.0f} by their CPU; bar {CREATES:.0f}")
    return enough and all(held)


def _told(name: str, few: float, many: float) -> bool:
    ratio = many / few
    whole = name != "page" or max(few, many) <= PAGE_CPU
    good = ratio <= GROWTH and whole
    line = f"{few * 1e3:10.1f}{many * 1e3:10.1f}{ratio:8.2f}{GROWTH:6.1f}"
    print(f"{name:16}{line}{'' if good else '  missed'}", flush=True)
    return good


def _attached(at: Path) -> bool:
    from towns import Towns  # noqa: PLC0415 - it makes directories when it is loaded

    place = at / "towns"
    place.mkdir()
    with Towns(place).open(place) as towns:
        known = {name: (one.port, str(one.ca)) for name, one in towns.towns.items()}
        with web(at / "attached", 1, known) as served:
            attach, detach = attaches(served, 10)
    print(f"attach {attach * 1e3:.0f} ms, detach {detach * 1e3:.0f} ms, least of 10")
    return True


if __name__ == "__main__":
    sys.exit(main())
