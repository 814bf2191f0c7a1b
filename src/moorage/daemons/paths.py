# SPDX-License-Identifier: BSD-2-Clause
"""Where things are: the directories of a master and of a node."""

import os
from dataclasses import dataclass
from pathlib import Path

from moorage.directories import DOOR, ETCD, MASTER_DIR, NODE_DIR, SOCKET

NODE_SETTINGS = "/etc/moorage/agent.toml"
KEPT = "the cluster's keys and records"
"""What is in the master's directory, for sentences."""


class _Below:
    """A file or directory of that name in the directory of a master or a node."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(
        self, places: "MasterPlaces | NodePlaces", _kind: object = None
    ) -> Path:
        return places.root / self._name


@dataclass(frozen=True, slots=True)
class MasterPlaces:
    """The master's directory.

    Attributes
    ----------
    root
        Its owner alone can enter it.
    """

    root: Path

    keys = _Below("keys")
    """The certificate authority and the master's own certificate."""
    store = _Below("state.sqlite")
    """The SQLite file."""
    etcd = _Below(ETCD)
    """Where in etcd the store is, if it is there and not in that file."""

    @property
    def socket(self) -> Path:
        """Where the command line speaks LUXI."""
        given = os.environ.get("MOORAGE_SOCKET")
        if given:
            return Path(given)
        ours = self.root == Path(MASTER_DIR)
        return Path(SOCKET) if ours else self.root / "luxi.sock"

    @property
    def door(self) -> Path:
        """Where the door for other machines speaks LUXI."""
        ours = self.socket == Path(SOCKET)
        return Path(DOOR) if ours else self.socket.with_name("door.sock")

    watcher = _Below("watcher.json")
    """What the watcher remembers of its last runs."""
    lock = _Below("master.lock")
    """Held by the master that runs."""
    supervisor = _Below("supervisor.lock")
    """Held by whoever starts the master again when it dies."""
    importing = _Below("import.lock")
    """Held by an import that is under way: another one would end it."""
    moving = _Below("store-move.json")
    """There while the state is moved to the other engine, and when that was cut."""
    founding = _Below("founding")
    """There while a cluster is being made, and when that was interrupted."""
    pid = _Below("master.pid")
    """Process id of the running master, for people; the lock tells the truth."""
    log = _Below("master.log")
    """What the master has to say."""


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """A node's directory."""

    root: Path

    settings = _Below("agent.json")
    """How the agent is to run; see :mod:`moorage.daemons.agent`."""

    @property
    def machine_settings(self) -> Path:
        """The same of this machine's node, commented; a scratch node has none."""
        ours = self.root == Path(NODE_DIR)
        return Path(NODE_SETTINGS) if ours else self.root / "agent.toml"

    keys = _Below("keys")
    """The node's key, and what the cluster gave it."""
    token = _Below("join-token")
    """The token, while the node waits to be let in."""
    socket = _Below("luxi.sock")
    """Where the command line learns who is the master, and finds guests of here."""
    serving = _Below("serving")
    """Pid of the agent, once it serves its cluster."""
    run = _Below("run")
    """What the agent must find again after it was killed."""
    lock = _Below("agent.lock")
    """Held by the agent that runs."""
    pid = _Below("agent.pid")
    """Process id of the running agent."""
    log = _Below("agent.log")
    """What the agent has to say; scripts' output is in the directory beside it."""
    providers = _Below("providers")
    """The administrator's files about providers: ``NAME.json``."""
    logs = _Below("log")
    """Output of provider and OS scripts."""


def node_places() -> NodePlaces:
    """Return the directory of this machine's node, wherever it is said to be."""
    return NodePlaces(Path(os.environ.get("MOORAGE_NODE_DIR") or NODE_DIR))


def master_places() -> MasterPlaces:
    """Return the master's directory, as the environment or the system has it."""
    return MasterPlaces(Path(os.environ.get("MOORAGE_DIR") or MASTER_DIR))
