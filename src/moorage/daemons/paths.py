# SPDX-License-Identifier: BSD-2-Clause
"""Where things are: the directories of a master and of a node."""

import os
from dataclasses import dataclass
from pathlib import Path

MASTER_DIR = "/var/lib/moorage"
SOCKET = "/run/moorage/luxi.sock"
NODE_DIR = "/var/lib/moorage-node"
NODE_SETTINGS = "/etc/moorage/agent.toml"
KEPT = "the cluster's keys and records"
"""What is in the master's directory, for sentences."""


@dataclass(frozen=True, slots=True)
class MasterPlaces:
    """The master's directory.

    Attributes
    ----------
    root
        Its owner alone can enter it.
    """

    root: Path

    @property
    def keys(self) -> Path:
        """The certificate authority and the master's own certificate."""
        return self.root / "keys"

    @property
    def store(self) -> Path:
        """The SQLite file."""
        return self.root / "state.sqlite"

    @property
    def socket(self) -> Path:
        """Where the command line speaks LUXI."""
        given = os.environ.get("MOORAGE_SOCKET")
        if given:
            return Path(given)
        ours = self.root == Path(MASTER_DIR)
        return Path(SOCKET) if ours else self.root / "luxi.sock"

    @property
    def watcher(self) -> Path:
        """What the watcher remembers of its last runs."""
        return self.root / "watcher.json"

    @property
    def lock(self) -> Path:
        """Held by the master that runs."""
        return self.root / "master.lock"

    @property
    def supervisor(self) -> Path:
        """Held by whoever starts the master again when it dies."""
        return self.root / "supervisor.lock"

    @property
    def founding(self) -> Path:
        """There while a cluster is being made, and when that was interrupted."""
        return self.root / "founding"

    @property
    def pid(self) -> Path:
        """Process id of the running master, for people; the lock tells the truth."""
        return self.root / "master.pid"

    @property
    def log(self) -> Path:
        """What the master has to say."""
        return self.root / "master.log"


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """A node's directory."""

    root: Path

    @property
    def settings(self) -> Path:
        """How the agent is to run; see :mod:`moorage.daemons.agent`."""
        return self.root / "agent.json"

    @property
    def machine_settings(self) -> Path:
        """The same of this machine's node, commented; a scratch node has none."""
        ours = self.root == Path(NODE_DIR)
        return Path(NODE_SETTINGS) if ours else self.root / "agent.toml"

    @property
    def keys(self) -> Path:
        """The node's key, and what the cluster gave it."""
        return self.root / "keys"

    @property
    def token(self) -> Path:
        """The token, while the node waits to be let in."""
        return self.root / "join-token"

    @property
    def socket(self) -> Path:
        """Where the command line learns who is the master, and finds guests of here."""
        return self.root / "luxi.sock"

    @property
    def serving(self) -> Path:
        """Pid of the agent, once it serves its cluster."""
        return self.root / "serving"

    @property
    def run(self) -> Path:
        """What the agent must find again after it was killed."""
        return self.root / "run"

    @property
    def pid(self) -> Path:
        """Process id of the running agent."""
        return self.root / "agent.pid"

    @property
    def log(self) -> Path:
        """What the agent has to say; scripts' output is in the directory beside it."""
        return self.root / "agent.log"

    @property
    def providers(self) -> Path:
        """The administrator's files about providers: ``NAME.json``."""
        return self.root / "providers"

    @property
    def logs(self) -> Path:
        """Output of provider and OS scripts."""
        return self.root / "log"


def node_places() -> NodePlaces:
    """Return the directory of this machine's node, wherever it is said to be."""
    return NodePlaces(Path(os.environ.get("MOORAGE_NODE_DIR") or NODE_DIR))


def master_places() -> MasterPlaces:
    """Return the master's directory, as the environment or the system has it."""
    return MasterPlaces(Path(os.environ.get("MOORAGE_DIR") or MASTER_DIR))
