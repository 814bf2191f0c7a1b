# SPDX-License-Identifier: BSD-2-Clause
"""The master's process, from outside: started, asked whether it serves, ended."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from moorage.api.luxi import LuxiClient
from moorage.errors import Failed, MoorageError, NotFound, WrongState

from . import process, systemd
from .paths import KEPT, MasterPlaces
from .state_directory import claim

LEAVE = 10.0
"""Seconds that running jobs get to end when the master stops, and then their tasks."""
_STOP = 4 * LEAVE
"""Seconds after which a master that does not stop is killed."""
_START = 30.0


def check_cluster(places: MasterPlaces) -> None:
    """Raise an error that tells what is there instead of a cluster."""
    if places.founding.exists():
        raise WrongState(
            f"the making of the cluster in {places.root} was interrupted",
            hint="gnt-cluster destroy --yes-do-it, then gnt-cluster init NAME",
        )
    if places.etcd.exists():
        return
    if places.store.exists():
        if not places.store.stat().st_size:
            raise no_store(f"{places.store} is empty")
    elif places.keys.exists() and any(places.keys.iterdir()):
        raise no_store(f"{places.store} is not there, but the cluster's keys are")
    else:
        raise NotFound(
            f"there is no cluster in {places.root}",
            hint="gnt-cluster getmaster tells a node where its master is; "
            "gnt-cluster init NAME makes a cluster",
        )


def no_store(what: str) -> MoorageError:
    """Return what is told of a directory that has a cluster, and no store."""
    from moorage.store import Damaged  # noqa: PLC0415 - start-up time

    return Damaged(f"{what}: mount it, or put a copy in its place")


def start(places: MasterPlaces) -> int:
    """Start the master, supervised, and return its pid when it answers.

    One that runs already, or that its supervisor is about to start again, is it.

    Raises
    ------
    MoorageError
        If there is no cluster, its store is damaged, or others could write to it.
    Failed
        If it does not come up; the sentence ends with its last words. If it runs, and
        waits until it can write its store, that is said.
    """
    check_cluster(places)
    said = _length(places.log)
    supervisor = process.holder(places.supervisor)
    if supervisor:
        with suppress(ProcessLookupError):  # it ended just now
            os.kill(supervisor, signal.SIGHUP)
    elif process.holder(places.lock):
        pass
    elif systemd.has_master(places):
        systemd.start_master()
    else:
        claim(places.root, KEPT)
        arguments = ["master", "run", "--restart", "--dir", str(places.root)]
        supervisor = process.spawn(arguments, places.log)

    def settled() -> bool:
        begun = supervisor is not None and process.alive(supervisor)
        locks = (places.lock, places.supervisor)
        return _answers(places) or not (begun or any(map(process.holder, locks)))

    process.wait_until(settled, _START)
    pid, why = process.holder(places.lock), _why_not(places)
    if pid and why and "waits" in why.facts:
        raise Failed(
            f"the master runs, process {pid}, and serves nobody yet: {why.message}",
            hint=why.hint,
        )
    if pid is None or why:
        if systemd.has_master(places):
            raise Failed("the master does not come up", hint=systemd.LOOK)
        with places.log.open(errors="replace") as log:
            log.seek(said if said <= _length(places.log) else 0)
            words = log.read().splitlines()[-5:]
        raise process.not_up("the master", _START, words)
    return pid


def _length(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _answers(places: MasterPlaces) -> bool:
    """Whether the master that holds the lock has opened its store."""
    return bool(process.holder(places.lock)) and _why_not(places) is None


def _why_not(places: MasterPlaces) -> MoorageError | None:
    """Return why the master serves nobody; None if it does, or waits as it is to."""
    try:
        with LuxiClient(str(places.socket)) as luxi:
            luxi.call("QueryConfigValues", ["drain_flag"])
    except MoorageError as error:
        return None if error.facts.keys() & {"led", "barred"} else error
    return None


def runs(places: MasterPlaces) -> bool:
    """Return whether there is a master, or one is about to be started again."""
    return any(map(process.holder, (places.supervisor, places.lock)))


def stop(places: MasterPlaces) -> bool:
    """Stop the master as planned; return whether there was one."""
    found = False
    if systemd.has_master(places) and process.holder(places.lock):
        found = True
        systemd.stop_master()
    for lock in (places.supervisor, places.lock):
        pid = process.holder(lock)
        if pid:
            process.end(pid, patience=_STOP)
            found = True
    return found
