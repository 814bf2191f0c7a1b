# SPDX-License-Identifier: BSD-2-Clause
"""What somebody can do who has a copy of a machine's directories."""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moorage.daemons import master_process
from moorage.daemons.devcluster import PORT, Scratch
from moorage.daemons.paths import MasterPlaces
from moorage.errors import MoorageError, Stale, Unreachable, WrongState
from moorage.model import Node
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.records.copies import OWN
from moorage.protocol import GetFacts, GetStanding, HeedTerm, Pause, Verb

OBEYED = "obeyed"
_SHUT_OUT = ("orders of this master's key no more", "gives no answer (Connection reset")
"""What a failover says to whom no node knows."""


class Careless(Authority):
    """Keys of somebody who speaks to whoever answers."""

    def asking(self) -> ssl.SSLContext:
        """Return a context in which any node is believed."""
        context = super().asking()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


@dataclass
class Thief:
    """A copy of a node's directory, or of a master's, and what it is good for.

    Attributes
    ----------
    directory
        With the keys to ask with: `keys` of a master, or of a node or candidate.
    own
        Name of the file with the key to ask with, without its end.
    """

    directory: Path
    town: Scratch
    own: str = "master"

    @property
    def _keys(self) -> Authority:
        return Careless(self.directory, own=self.own)

    def says(self, node: str, call: Verb[object], term: int) -> str:
        """Return what a node answers to an order: a word, or why it refuses.

        An error that is no refusal of this key fails the test: it would look as if the
        thief was shut out, and so would a node that does not answer the true master.
        """
        told = asyncio.run(self._told(node, call, term))
        if told is None:
            return OBEYED
        assert self._is_meant(node, told), (told.message, told.facts)
        true = Thief(self.town.master.keys, self.town)
        if self.directory != true.directory:
            assert true.known(node), f"{node} does not answer its master"
        return told.message

    def _is_meant(self, node: str, told: MoorageError) -> bool:
        """Whether an error is a refusal of the key that was shown."""
        if isinstance(told, Stale):
            return "is over" not in told.message  # a thief counts further
        if isinstance(told, WrongState):
            return "its own key alone" in told.message
        sent = isinstance(told, Unreachable) and told.facts["sent"] is True
        return sent and self._is_turned_away(node)

    def _is_turned_away(self, node: str) -> bool:
        """Whether a node ends the handshake when it has seen the certificate."""
        place = (self.town.address(node), PORT)
        context = self._keys.asking()
        with socket.create_connection(place, 30) as link:
            try:
                with context.wrap_socket(link) as found:
                    return found.recv(1) == b""
            except ssl.SSLError as error:
                return "ALERT" in (error.reason or "")
            except ConnectionResetError:
                return True

    async def _told(
        self, node: str, call: Verb[object], term: int
    ) -> MoorageError | None:
        ip = self.town.address(node)
        known = Node(
            uuid=node, name=node, primary_ip=ip, secondary_ip=ip, port=PORT, group="g"
        )
        nodes = HttpNodes(self._keys, connect=5)
        # The mark is no secret to nodes; nothing is said of who leads.
        nodes.exchange.mark = ""
        try:
            await nodes.call(known, call, term, lambda *_: None)
        except MoorageError as error:
            return error
        finally:
            await nodes.close()
        return None

    def obeyed(self, node: str, term: int) -> bool:
        """Whether a node takes an order of a term."""
        return self.says(node, Pause(), term) == OBEYED

    def promised(self, node: str, term: int) -> bool:
        """Whether a node promises a term: the way to take the lead."""
        return self.says(node, HeedTerm(), term) == OBEYED

    def known(self, node: str) -> bool:
        """Whether a node hears the key at all; nothing is changed."""
        return self.says(node, GetStanding(), 0) == OBEYED

    def reads(self, node: str, term: int) -> bool:
        """Whether a node tells what it has; why not, does not matter."""
        return asyncio.run(self._told(node, GetFacts(), term)) is None

    def fails_over(self, place: Path) -> bool:
        """Type master-failover on the copy; return whether it leads then.

        If it does not, because its own node does not take its key for one.
        """
        env = {
            **os.environ,
            "MOORAGE_DIR": str(place),
            "MOORAGE_SOCKET": str(place / "luxi.sock"),
            "MOORAGE_NODE_DIR": str(self.directory.parents[2]),
        }
        gnt_cluster = str(Path(sys.executable).parent / "gnt-cluster")
        argv = [gnt_cluster, "master-failover", "--yes-do-it"]
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        if done.returncode == 0:
            assert "is the master" in said
            return True
        assert any(one in said for one in _SHUT_OUT), said
        return False

    def gives_up(self, place: Path) -> None:
        """End the master that a failover started."""
        with suppress(MoorageError):
            master_process.stop(MasterPlaces(place))


def of_node(town: Scratch, name: str, place: Path) -> Thief:
    """Return a thief with a node's directory, who asks with the key to lead, if any.

    With none it asks with the key that the node serves with.
    """
    shutil.copytree(town.node(name).root, place, symlinks=True, ignore=_sockets)
    keys = place / "run" / "state" / "keys"
    if (keys / f"{OWN}.pem").exists():
        return Thief(keys, town, OWN)
    keys = place / "keys"
    key = (keys / "node.key") if (keys / "node.key").exists() else keys / "node.pem"
    both = tls.key_pem(tls.load_key(key)) + (keys / "node.pem").read_bytes()
    (keys / "master.pem").write_bytes(both)
    return Thief(keys, town)


def of_master(town: Scratch, place: Path) -> Thief:
    """Return a thief with a copy of the master's keys."""
    shutil.copytree(town.master.keys, place)
    return Thief(place, town)


def private_keys(place: Path) -> set[str]:
    """Return the names of the files below a directory that have private keys."""
    files = (one for one in place.rglob("*") if one.is_file())
    return {one.name for one in files if b"PRIVATE KEY" in one.read_bytes()}


def _sockets(_directory: str, names: list[str]) -> set[str]:
    return {one for one in names if one.endswith(".sock")}
