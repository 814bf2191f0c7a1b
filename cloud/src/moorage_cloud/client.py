# SPDX-License-Identifier: BSD-2-Clause
"""A cluster, reached by Moorage's public client."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moorage.client import Client, Door
from moorage.errors import MoorageError, NotFound, Refused

from .clusters import (
    AnotherCluster,
    ClusterRefused,
    ClusterSilent,
    Disk,
    Heard,
    Instance,
    Job,
    JobState,
)
from .requests import (
    AnyRequest,
    Build,
    Destroy,
    Grow,
    Leave,
    Reboot,
    Remove,
    Rename,
    ServerRequest,
    ShutDown,
    Snapshot,
    StartUp,
    Take,
)

_STATES = {
    "success": JobState.DONE,
    "error": JobState.FAILED,
    "canceled": JobState.FAILED,
}
_DOOR = frozenset({401, 403, 429, 503})
"""With which status a door refuses who asks, whatever they ask for."""
_SURE = 5.0
"""Seconds for which a cluster is taken for the one that it was."""
_DIAGNOSED = 60.0
"""Seconds in which a cluster has asked all its nodes which providers they have."""
_DISK = (
    *("name", "instance", "size", "volume", "provider", "iv_name"),
    *("epoch", "uuid"),
)
_INSTANCE = ("name", "status", "disk.names")

Opcode = Mapping[str, Any]


class MoorageCluster:
    """A cluster behind its door.

    Parameters
    ----------
    timeout
        Seconds without a word after which nobody answers.
    uuid
        Who is to answer; from anybody else nothing is believed, and nothing asked for.
        Empty for whoever answers.
    """

    def __init__(self, door: Door, timeout: float, uuid: str = "") -> None:
        self._uuid = uuid
        self._sure_until = 0.0
        # A worker tries again by itself, with the time between two tries on record.
        self._client = Client(door, timeout=timeout, patience=0.0)

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Ask the cluster that is meant; whatever goes wrong is silence of its."""
        try:
            self._check()
            yield
        except (MoorageError, TimeoutError) as error:
            self._sure_until = 0.0
            raise ClusterSilent(str(error)) from None

    def _check(self) -> None:
        """Refuse whoever else answers by now."""
        if self._uuid and time.monotonic() > self._sure_until:
            told = str(self._client.info()["uuid"])
            if told != self._uuid:
                raise AnotherCluster(told)
            self._sure_until = time.monotonic() + _SURE

    def uuid(self) -> str:
        """Return who answers."""
        try:
            return str(self._client.info()["uuid"])
        except MoorageError as error:
            raise ClusterSilent(str(error)) from None

    def features(self) -> frozenset[str]:
        """Return what clients may rely on."""
        with self._asking():
            return self._client.features()

    def providers(self) -> frozenset[str]:
        """Return the names of providers that some node has."""
        ask = {"OP_ID": "OP_EXT_STORAGE_DIAGNOSE", "output_fields": ["name"]}
        with self._asking():
            (rows,) = self._client.run(ask, timeout=_DIAGNOSED)
        return frozenset(name for (name,) in rows)

    def submit(self, request: AnyRequest, key: str, reason: str) -> int:
        """Make a job of a request; return its number."""
        trail = [["moorage-cloud", reason, time.time_ns()]]
        op = {**opcode(request), "reason": trail}
        with self._asking():
            try:
                return self._client.submit(op, key=key)
            except MoorageError as error:
                if _is_refusal(error):
                    raise ClusterRefused(str(error)) from None
                raise

    def job(self, number: int) -> Job:
        """Return where a job stands."""
        with self._asking():
            try:
                found = self._client.job(number)
            except NotFound:
                return Job(JobState.UNKNOWN)
        state = _STATES.get(found.status, JobState.UNDER_WAY)
        return Job(state, one_line(str(found.error or "")))

    def disk(self, name: str) -> Disk | None:
        """Return the disk with a name; None if the cluster has none."""
        with self._asking():
            try:
                found = self._client.query("disk", _DISK, ["==", "name", name])
            except NotFound:
                return None
        return next(map(_disk, found.objects()), None)

    def disks(self) -> list[Disk]:
        """Return all disks."""
        with self._asking():
            found = self._client.query("disk", _DISK).objects()
        return [_disk(one) for one in found]

    def instances(self) -> list[Instance]:
        """Return all instances."""
        with self._asking():
            found = self._client.query("instance", _INSTANCE).objects()
        return [
            Instance(
                one["name"],
                one["status"] or "",
                tuple(name or "" for name in one["disk.names"] or ()),
            )
            for one in found
        ]

    def events(self, after: int | None, seconds: float) -> Iterator[Heard]:
        """Yield what happens behind an entry, for a while; None for from now on."""
        self._sure_until = 0.0
        with self._asking():
            told = self._client.events(after, kinds=("job",), timeout=seconds)
            for entry in told:
                if entry.reset:
                    self._sure_until = 0.0
                self._check()
                jobs = {
                    event.job: Job(_STATES[event.status])
                    for event in entry.events
                    if event.status in _STATES
                }
                yield Heard(entry.number, jobs, entry.reset)


def one_line(text: str) -> str:
    r"""Return what went wrong as one line, as volumes and messages tell it.

    >>> one_line("the script failed, last lines of output:\nno room\nbye\n")
    'the script failed, last lines of output: no room; bye'
    """
    lines = filter(None, (" ".join(line.split()) for line in text.splitlines()))
    return "; ".join(lines).replace(":; ", ": ")


def opcode(request: AnyRequest) -> Opcode:
    """Return a request as the cluster's operation.

    >>> opcode(Leave(name="snf-vol-7", instance="snf-1"))["disks"]
    [['remove', 'snf-vol-7', {}]]
    """
    match request:
        case Build() | StartUp() | ShutDown() | Reboot() | Remove() | Rename():
            return _of_server(request)
        case Grow(size=size):
            grown = {"amount": size, "absolute": True}
            return {"OP_ID": "OP_DISK_GROW", "disk": request.name, **grown}
        case Snapshot(snapshot=copy):
            named = {"new_name": copy, "volume": copy}
            return {"OP_ID": "OP_DISK_SNAPSHOT", "disk": request.name, **named}
    if request.instance:
        return _with(request.instance, request)
    return _alone(request)


def _of_server(request: ServerRequest) -> Opcode:
    """Return what is done with an instance itself."""
    named = {"instance_name": request.instance}
    match request:
        case Build():
            bare = {"disk_template": "diskless", "disks": [], "nics": []}
            idle = {"start": False, "no_install": True, "ip_check": False}
            made = {"OP_ID": "OP_INSTANCE_CREATE", "mode": "create"}
            return {**made, **named, **bare, **idle, "name_check": False}
        case StartUp():
            return {"OP_ID": "OP_INSTANCE_STARTUP", **named}
        case ShutDown():
            return {"OP_ID": "OP_INSTANCE_SHUTDOWN", **named}
        case Reboot(hard=hard):
            how = {"reboot_type": "hard" if hard else "soft"}
            return {"OP_ID": "OP_INSTANCE_REBOOT", **named, **how}
        case Remove():
            return {"OP_ID": "OP_INSTANCE_REMOVE", **named}
        case Rename(names=names, dry_run=dry_run):
            disks = [["modify", old, {"name": new}] for old, new in names.items()]
            asked = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "dry_run": dry_run}
            return {**asked, **named, "disks": disks}


def _with(instance: str, request: Take | Leave | Destroy) -> Opcode:
    """Return what is done with an instance's disk."""
    match request:
        case Take():
            change: list[Any] = ["add", "-1", _words(request)]
        case Leave() | Destroy():
            change = ["remove", request.name, {}]
    found = {
        "OP_ID": "OP_INSTANCE_SET_PARAMS",
        "instance_name": instance,
        "disks": [change],
        "depends": [],
        "hotplug_if_possible": True,
    }
    return {**found, "keep_disks": True} if isinstance(request, Leave) else found


def _alone(request: Take | Leave | Destroy) -> Opcode:
    """Return what is done with a disk that no instance has."""
    match request:
        case Take():
            return _made(request)
        case Leave(name=name):
            why = "the volume is the cloud's, and goes on without this cluster"
            return {"OP_ID": "OP_DISK_FORGET", "disk": name, "why": why}
        case Destroy(name=name):
            return {"OP_ID": "OP_DISK_REMOVE", "disk": name}


def _words(take: Take) -> dict[str, Any]:
    """Return a disk in the words of Ganeti's ``--disk``."""
    words: dict[str, Any] = {
        **take.params,
        "size": take.size,
        "name": take.name,
        "reuse_data": str(take.adopt),
    }
    if take.pool:
        words["pool"] = take.pool
    else:
        words["dev_type"] = take.template
        words["provider"] = take.provider
    if take.adopt:
        words["epoch"] = take.epoch
    if take.read_only:
        words["mode"] = "ro"
    return words


def _made(take: Take) -> Opcode:
    """Return what has a volume as a disk of its own."""
    found: dict[str, Any] = {
        "OP_ID": "OP_DISK_ADD",
        "name": take.name,
        "size": take.size,
        "params": {**take.params, "reuse_data": str(take.adopt)},
    }
    if take.pool:
        found["pool"] = take.pool
    else:
        found["disk_template"] = take.template
        found["provider"] = take.provider
    if take.adopt:
        found["epoch"] = take.epoch
    return found


def _disk(told: Mapping[str, Any]) -> Disk:
    return Disk(
        name=told["name"] or "",
        instance=told["instance"] or None,
        size=told["size"] or 0,
        volume=told["volume"] or "",
        provider=told["provider"] or "",
        slot=(told["iv_name"] or "").removeprefix("disk/"),
        uuid=told["uuid"] or "",
        epoch=told["epoch"] or 0,
    )


def _is_refusal(error: MoorageError) -> bool:
    """Whether the cluster refused a request; else nobody knows what became of it.

    A door that does not let us in has not looked at the request: an earlier try of it
    may have made a job.
    """
    said_by_door = error.facts.get("status") in _DOOR
    lost = error.code == "no-master" or error.facts.get("lost")
    return isinstance(error, Refused) and not (said_by_door or lost)
