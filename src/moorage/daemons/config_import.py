# SPDX-License-Identifier: BSD-2-Clause
"""``moorage import-config``: a file of Ganeti's becomes the cluster's configuration.

The master is stopped while the store is written: the import is one commit, in a term of
its own, and candidates fetch it when the master is back.
"""

import asyncio
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, json

from moorage.api.rapi.users import entries
from moorage.client import Client, Socket
from moorage.config_data import NEWEST, Document, read, upgrade, version_of
from moorage.config_data.importing import Beside, Imported, expected, imported
from moorage.config_data.importing_plan import (
    ERROR,
    NOTICE,
    WARNING,
    Fate,
    Finding,
    Found,
    Plan,
    fates,
    findings,
    lacking,
)
from moorage.config_data.verify import complaints
from moorage.directories import RAPI_USERS
from moorage.errors import BadInput, Failed, WrongState
from moorage.jobs.job import decode as decode_job
from moorage.model import Config
from moorage.model.commits import Write
from moorage.model.misfit import UNREADABLE, misfit
from moorage.store import ConfigStore, inspect, loaded, store_at
from moorage.store.base import ADVICE

from . import master_process, process
from .config_export import BESIDE
from .paths import MasterPlaces
from .state_directory import as_owner

_DAEMONS = frozenset(
    {
        *("ganeti-confd", "ganeti-kvmd", "ganeti-luxid", "ganeti-masterd"),
        *("ganeti-metad", "ganeti-mond", "ganeti-noded", "ganeti-rapi"),
        "ganeti-wconfd",
    }
)
_DIGITS = 15
"""Of a job's number: no queue has counted so far, and any client can hold it."""


class Import:
    """An import of one file, looked at first.

    Attributes
    ----------
    plan
        What becomes of everything, and what stands in the way.
    """

    def __init__(
        self,
        places: MasterPlaces,
        file: Path,
        directory: Path | None = None,
        *,
        down: bool = False,
        run_on: bool = False,
    ) -> None:
        """Read all files, and the store; nothing is changed.

        Parameters
        ----------
        directory
            Ganeti's, for what lies beside its configuration; None for nothing.
        down
            Whether somebody vouches that Ganeti runs no guest any more.
        run_on
            Whether guests that Ganeti runs are to be taken over: until then, nothing
            starts them while their nodes see them.

        Raises
        ------
        BadInput
            If a file cannot be read, or is none of Ganeti's.
        MoorageError
            If the store is damaged. Without one, the plan is that of a cluster whose
            nodes are those of the file.
        """
        self._places = places
        self._down = down
        self._run_on = run_on
        found = read(_content(file))
        self._document, self._notes = upgrade(found, NEWEST, _fresh)
        self._version = version_of(found)
        self._beside = _beside(file.with_name(file.name + BESIDE), self._document)
        self._jobs = _last_job(directory) if directory else 0
        self._users = _users(directory / "rapi" / "users") if directory else ()
        self._there = places.store.exists() or places.etcd.exists()
        here = _state(places)[0] if self._there else expected(self._document)
        self.plan = self._planned(here)

    def _planned(self, here: Config) -> Plan:
        made = self._made(here)
        alone = "there is no cluster here: all nodes of the file are taken as joined"
        wrong = complaints(self._document)
        told = [
            *(() if self._there else (Finding(NOTICE, "cluster", alone),)),
            *(Finding(NOTICE, "file", note) for note in self._notes),
            *self._users,
            *(Finding(WARNING, one.object, one.message) for one in wrong),
            *(Finding(ERROR, "machine", one) for one in _running()),
            *self._found(made, here),
            *_lacking(self._places, made),
        ]
        cluster = self._document["cluster"]["cluster_name"]
        shown: list[Fate] = [] if made.wrong else [*fates(made.config, here)]
        return Plan(cluster, str(self._version), tuple(shown), tuple(told))

    def _made(self, here: Config) -> Imported:
        return imported(self._document, here, _fresh, self._beside)

    def _found(self, made: Imported, here: Config) -> Iterator[Finding]:
        real = os.path.realpath if self._there else str  # else its devices are no word
        return findings(made, here, down=self._down, run_on=self._run_on, real=real)

    def check(self) -> None:
        """Raise `NotFound` if there is no cluster for it to come into."""
        master_process.check_cluster(self._places)

    def do(self) -> None:
        """Make it the cluster's state; the master is stopped and started.

        Raises
        ------
        WrongState
            If something stands in the way, by now or before: nothing was changed.
        """
        self.check()
        busy = f"another import into {self._places.root} is under way"
        with process.held(self._places.importing, busy, "wait for its end"):
            self._do()

    def _do(self) -> None:
        _check(self.plan.findings)
        _check_idle(_state(self._places)[1].get("job", {}))
        was_running = master_process.stop(self._places)
        try:
            as_owner(self._places.root, self._written)
        finally:
            if was_running:
                master_process.start(self._places)

    def _written(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        places = self._places
        with process.held(places.lock, f"a master serves {places.root}", "try again"):
            config_store, others = await ConfigStore.open(store_at(places.store))
            try:
                here = config_store.config
                made = self._made(here)
                _check(self._found(made, here))
                _check_idle(others.get("job", {}))
                queue = others.get("queue", {})
                last = max(self._jobs, int(queue.get("last", b"0")))
                numbers = _numbers(self._document, last)
                await config_store.commit(made.change(here), numbers)
            finally:
                await config_store.close()


def _lacking(places: MasterPlaces, made: Imported) -> Iterator[Finding]:
    """Ask the nodes for systems and providers, through the master."""
    if not process.holder(places.lock):
        what = "no master runs: nobody asked the nodes for operating systems and "
        yield Finding(NOTICE, "cluster", f"{what}providers")
    elif not made.wrong:
        with Client(Socket(str(places.socket))) as cluster:
            yield from lacking(made.config, _found(cluster))


def _found(cluster: Client) -> Found:
    systems = {"OP_ID": "OP_OS_DIAGNOSE", "output_fields": ["name", "valid"]}
    status = ["name", "nodegroup_status"]
    providers = {"OP_ID": "OP_EXT_STORAGE_DIAGNOSE", "output_fields": status}
    named: dict[str, Any] = {"names": []}
    oses, exts = cluster.run(systems | named, providers | named)
    return Found(
        frozenset(name for name, valid in oses if valid),
        frozenset(name for name, groups in exts if all(groups.values())),
    )


def _check(told: Iterable[Finding]) -> None:
    for one in told:
        if one.level == ERROR:
            raise WrongState(
                f"{one.object}: {one.message}", hint="moorage import-config --dry-run"
            )


def _check_idle(jobs: Mapping[str, bytes]) -> None:
    """Raise `WrongState` if a job would be carried on about what is gone then."""
    known = (decode_job(value) for value in jobs.values())
    under_way = sorted(job.id for job in known if not job.finished)
    if under_way:
        raise WrongState(
            f"jobs are under way, job {under_way[0]} among them",
            hint=f"gnt-job watch {under_way[0]}",
        )


def _numbers(document: Document, last: int) -> list[Write]:
    """Return the records of the numbers that go on where Ganeti's ended."""
    serial = int(document.get("serial_no") or 1)
    return [
        (("config", "serial_no"), b"%d" % serial),
        (("queue", "last"), b"%d" % last),
    ]


def _state(places: MasterPlaces) -> tuple[Config, dict[str, dict[str, bytes]]]:
    found = inspect(places.store, live=process.holder(places.lock) is not None)
    if found.faults:
        raise Failed(f"{places.store} is damaged: {found.faults[0]}", hint=ADVICE)
    return loaded(found.records)


def _fresh() -> str:
    return str(uuid.uuid4())


def _content(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():  # a pipe or a device may never end
            raise BadInput(f"{file} is no regular file")
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}") from error


class _Kept(Struct):
    """What an export keeps beside its file."""

    cluster: str
    disks: dict[str, dict[str, Any]] = {}
    pools: dict[str, dict[str, Any]] = {}
    hvparams: dict[str, dict[str, Any]] = {}


def _beside(file: Path, document: Document) -> Beside:
    """Return what an export kept beside its file."""
    if not file.exists():
        return {}
    content = _content(file)
    try:
        kept = json.decode(content, type=_Kept)
    except ValidationError as error:
        raise BadInput(f"{file} is not what an export keeps: {misfit(error)}") from None
    except (DecodeError, *UNREADABLE) as error:
        raise BadInput(f"{file} is not what an export keeps: {error}") from None
    if kept.cluster != document["cluster"].get("uuid"):
        raise BadInput(
            f"{file} is of another cluster, {kept.cluster}", hint="move it elsewhere"
        )
    return {"disks": kept.disks, "pools": kept.pools, "hvparams": kept.hvparams}


def _users(file: Path) -> tuple[Finding, ...]:
    """Return whom Ganeti's RAPI lets in: an import gives nobody a right."""
    if not file.exists():
        return ()
    try:
        names = [one.user.name for one in entries(_content(file).decode())]
    except UnicodeError:
        raise BadInput(f"{file} is no file of users") from None
    told = (
        f"they do not come in by themselves: {', '.join(names) or 'nobody'}. To let "
        f"them in: cp {file} {RAPI_USERS}"
    )
    return (Finding(NOTICE, "users of RAPI", told),)


def _last_job(directory: Path) -> int:
    """Return the number of Ganeti's last job, by its queue."""
    file = directory / "queue" / "serial"
    said = _content(file).strip()
    if not said.isdigit() or len(said) > _DIGITS:
        raise BadInput(f"{file} holds no number of a job")
    return int(said)


def _running(proc: Path = Path("/proc")) -> Iterator[str]:
    """Yield the daemons of Ganeti's that run on this machine."""
    found: set[str] = set()
    for one in proc.glob("[0-9]*/cmdline"):
        try:
            words = one.read_bytes().split(b"\0")[:3]
        except OSError:  # it ended
            continue
        names = {Path(word.decode(errors="replace")).name for word in words}
        found |= names & _DAEMONS
    for name in sorted(found):
        yield f"{name} of Ganeti's runs here: stop it, on every node"
