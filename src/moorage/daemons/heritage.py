# SPDX-License-Identifier: BSD-2-Clause
"""What lies on a candidate for the next master: a copy of the state, and a key."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import NotFound, WrongState
from moorage.jobs.job import decode as decode_job
from moorage.model import Config, Node
from moorage.model.commits import Head
from moorage.node.doors import enrolment
from moorage.node.records import leader
from moorage.node.records.copies import OWN
from moorage.node.records.state_copy import StateCopy
from moorage.store import inspect, loaded
from moorage.store.records import head_of, to_read

from . import voting
from .paths import NodePlaces


@dataclass(frozen=True, slots=True)
class Heritage:
    """What lies on a candidate for the next master.

    Attributes
    ----------
    path
        The file of the copy.
    keys
        Directory of the key to lead with.
    jobs
        How many jobs had not ended.
    """

    own: str
    path: Path
    keys: Path
    head: Head
    config: Config
    jobs: int

    @property
    def keepers(self) -> set[str]:
        """Names of those whose word on copies counts."""
        return voting.keepers(self.config)

    @property
    def own_key(self) -> str:
        """Name of the file with the key to lead with, without its end.

        A master of before each candidate had a key of its own sent it its own.

        Raises
        ------
        WrongState
            If there is none yet.
        """
        for name in (OWN, "master"):
            if (self.keys / f"{name}.pem").exists():
                return name
        raise WrongState(
            f"node {self.own} keeps a copy of the state, and no key to lead with yet: "
            "the master gives it one",
            hint="gnt-cluster master-failover, on another candidate",
        )

    @property
    def voters(self) -> list[Node]:
        """The nodes that are asked: those that nobody has marked offline."""
        return self.config.online()

    @property
    def former(self) -> str:
        """Name of the node of the master before."""
        return self.config.node(self.config.cluster.master_node).name


def read(node: NodePlaces) -> Heritage:
    """Return what a candidate has.

    Raises
    ------
    NotFound
        If it is no candidate, or got no whole copy yet.
    WrongState
        If its copy is damaged.
    """
    if not enrolment.joined(node.keys):
        raise NotFound(f"the node in {node.root} belongs to no cluster")
    own = enrolment.name(node.keys)
    kept = StateCopy(node.run / "state")
    while True:
        path = kept.path
        if path is None:
            known = leader.read(node.run)
            who = f"; the master is {known.sender.node}" if known else ""
            raise NotFound(
                f"node {own} keeps no copy of the cluster's state: it is no master "
                f"candidate, or became one just now{who}",
                hint="gnt-cluster master-failover, on a candidate",
            )
        try:
            return heritage_at(own, path, node.run / "state" / "keys")
        except (WrongState, sqlite3.Error, OSError):
            if kept.path == path:  # else the agent has put a new one in its place
                raise


def heritage_at(own: str, path: Path, keys: Path) -> Heritage:
    """Return what is in a copy; raise `WrongState` if it is damaged."""
    found = inspect(path, live=True)
    if found.faults:
        raise WrongState(
            f"the copy of the state on {own} is damaged: {found.faults[0]}",
            hint="gnt-cluster master-failover, on another candidate",
        )
    config, others = loaded(found.records)
    jobs = [decode_job(value) for value in others.get("job", {}).values()]
    under_way = sum(not job.finished for job in jobs)
    return Heritage(own, path, keys, _head(path), config, under_way)


def _head(path: Path) -> Head:
    with to_read(path) as database:
        return head_of(database)[0]
