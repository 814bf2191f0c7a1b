# SPDX-License-Identifier: BSD-2-Clause
"""What a stolen directory is good for, before and after each remedy: a table.

It stands in the page on security, between two marks. When what is seen here is not what
stands there, the test fails and shows the table that should.
"""

import io
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import thief
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.node.records.copies import OWN
from thief import Thief

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "why" / "security.md"
BEGIN, END = "<!-- what thieves can: made by a test -->\n", "<!-- end -->\n"
BIN = Path(sys.executable).parent
PATH = f"{BIN}:{os.environ['PATH']}"
DEMOTE, REMOVE = "gnt-node modify -C no", "gnt-node remove"
READD = "gnt-node add --readd"
RENEW = "gnt-cluster renew-crypto"
ANEW = "gnt-cluster renew-crypto --new-cluster-certificate"
BEFORE = "nothing was done"
WHO = {
    "node": "a node that is no candidate",
    "candidate": "a candidate",
    "candidate, off": "a candidate, from a node that was off then",
    "master": "the master's `keys/`",
    "master, off": "the master's `keys/`, from a node that was off then",
    "backup": "a backup without a passphrase",
}
MOST = (1 << 53) - 1
"""The highest term."""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Scratch]:
    """Return a cluster of a master, two candidates, and a node that is none."""
    at = tmp_path / "c"
    hands = Typist({"PATH": PATH}, io.StringIO())
    try:
        hands.type(f"moorage up {at} --nodes 4 --hypervisor sim")
        yield devcluster.read(at)
    finally:
        if at.exists():
            devcluster.down(at)


class Show:
    """A cluster, thieves, and what was seen of them."""

    def __init__(self, town: Scratch, place: Path) -> None:
        self.town = town
        self.hands = Typist(town.environment() | {"PATH": PATH}, io.StringIO())
        self.cells: dict[tuple[str, str], str] = {}
        self.lairs = (place / f"lair{number}" for number in range(100))

    @property
    def term(self) -> int:
        return int((self.town.node("node1").run / "fence" / "term").read_text())

    def of(self, node: str) -> Thief:
        return thief.of_node(self.town, node, next(self.lairs))

    def of_master(self) -> Thief:
        return thief.of_master(self.town, next(self.lairs))

    def of_backup(self) -> Thief:
        place = next(self.lairs)
        file = place.with_suffix(".backup")
        self.hands.type(f"moorage backup {file}")
        with tarfile.open(file) as members:
            members.extractall(place)  # noqa: S202 - it is our own
        return Thief(place / "keys", self.town)

    def look(self, who: str, when: str, stolen: Thief, *victims: str) -> None:
        """Note the most that a thief can do to nodes; it is the same at each."""
        seen = {self._seen(stolen, one, self.term) for one in victims}
        (self.cells[who, when],) = seen

    def look_alone(self, who: str, when: str, stolen: Thief, victim: str) -> None:
        """The same at a node that no master has spoken to since its agent began."""
        term = int((self.town.node(victim).run / "fence" / "term").read_text())
        self.cells[who, when] = self._seen(stolen, victim, term)

    @staticmethod
    def _seen(stolen: Thief, victim: str, term: int) -> str:
        if stolen.obeyed(victim, term):
            return "gives orders"
        if stolen.promised(victim, term + 1000):
            return "takes the lead"
        return "asks who leads" if stolen.known(victim) else "nothing"

    def obeyed(self, node: str) -> bool:
        """Whether a node obeys its true master."""
        true = Thief(self.town.master.keys, self.town)
        return true.reads(node, self.term)

    def made_anew(self, node: str) -> None:
        """Let a node in with new keys, as the page says."""
        places = self.town.node(node)
        process.end(int(places.pid.read_text()))
        shutil.rmtree(places.keys)
        devcluster.start_agent(self.town, node)
        self.hands.type(f"gnt-node add --readd --token-file {places.token} {node}")
        assert self.obeyed(node)

    def leads(self, node: str) -> bool:
        """Wait until a candidate has a key that is on record; it gets one at once."""
        kept = self.town.node(node).run / "state" / "keys"
        own = Thief(kept, self.town, OWN)
        held = kept / f"{OWN}.pem"
        return process.wait_until(lambda: held.exists() and own.known("node1"), 30)


def test_what_each_thief_can_stands_on_the_page(town: Scratch, tmp_path: Path) -> None:
    show = Show(town, tmp_path)
    _made_anew(show)
    known = _taken_back(show)
    _at_a_node_that_was_off(show, known)
    _all_new(show)
    text = PAGE.read_text()
    found = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    table = _table(show.cells)
    assert found == table, table
    # With a key that leads, the same failover makes a master.
    true, lair = show.of("node2"), next(show.lairs)
    show.hands.type("moorage master stop")
    try:
        assert true.fails_over(lair)
    finally:
        true.gives_up(lair)


def _made_anew(show: Show) -> None:
    """Look before anything was done, and after nodes came back with new keys."""
    hands, look = show.hands, show.look
    plain, candidate = show.of("node4"), show.of("node2")
    for stolen in (plain, candidate):
        assert {"ca.key"}.isdisjoint(thief.private_keys(stolen.directory))
    for who, stolen in (
        ("node", plain),
        ("master", show.of_master()),
        ("backup", show.of_backup()),
        ("candidate", candidate),
    ):
        look(who, BEFORE, stolen, "node3")
    hands.type("moorage master stop")
    hands.type("moorage master start")  # it has node3 back, with a higher term
    assert process.wait_until(lambda: show.obeyed("node3"), 60)

    assert candidate.promised("node4", MOST)  # no master can follow that
    for name in ("node4", "node2"):
        show.made_anew(name)
    look("node", READD, plain, "node1", "node3", "node4")
    look("candidate", READD, candidate, "node1", "node3", "node4")
    assert show.leads("node2")


def _taken_back(show: Show) -> dict[str, Thief]:
    """Look after each remedy, of which node4 hears nothing; return who had keys."""
    town, hands, look = show.town, show.hands, show.look
    process.end(int(town.node("node4").pid.read_text()))
    hands.type("gnt-node modify --offline=yes node4")
    known = {DEMOTE: show.of("node2"), REMOVE: show.of("node3")}
    hands.type(f"{DEMOTE} --auto-promote node2")
    look("candidate", DEMOTE, known[DEMOTE], "node1", "node3")
    assert not known[DEMOTE].fails_over(next(show.lairs))
    plain = show.of("node2")
    hands.type("gnt-node modify -C yes node2")
    assert show.leads("node2")
    hands.type(f"{REMOVE} node3")
    look("candidate", REMOVE, known[REMOVE], "node1", "node2")

    known[RENEW], master, backup = show.of("node2"), show.of_master(), show.of_backup()
    hands.type(RENEW)
    look("node", RENEW, plain, "node1")
    look("candidate", RENEW, known[RENEW], "node1", "node2")
    look("master", RENEW, master, "node1", "node2")
    look("backup", RENEW, backup, "node1", "node2")
    return known | {"master": master}


def _at_a_node_that_was_off(show: Show, known: dict[str, Thief]) -> None:
    """Look at node4, to which no master has spoken since, and let it in anew."""
    town, hands, look = show.town, show.hands, show.look
    master = known.pop("master")
    hands.type("moorage master stop")
    devcluster.start_agent(town, "node4")
    show.look_alone("master, off", RENEW, master, "node4")
    for when, stolen in known.items():
        show.look_alone("candidate, off", when, stolen, "node4")
    hands.type("moorage master start")
    show.made_anew("node4")
    plain = show.of("node4")
    hands.type(f"{REMOVE} node4")
    look("node", REMOVE, plain, "node1", "node2")


def _all_new(show: Show) -> None:
    hands, look = show.hands, show.look
    later, master = show.of("node2"), show.of_master()
    hands.type(ANEW)
    look("candidate", ANEW, later, "node1", "node2")
    look("master", ANEW, master, "node1", "node2")
    assert hands.ask("gnt-cluster verify")["errors"] == []


def _table(cells: dict[tuple[str, str], str]) -> str:
    """Return the table as the page has it."""
    when = (BEFORE, DEMOTE, REMOVE, READD, RENEW, ANEW)
    titles = [BEFORE, *(f"`{one}`" for one in when[1:])]
    lines = [
        f"| stolen | {' | '.join(titles)} |",
        f"|---{'|---' * len(when)}|",
        *(
            f"| {told} | {' | '.join(cells.get((who, one), '-') for one in when)} |"
            for who, told in WHO.items()
        ),
    ]
    return "\n".join(lines) + "\n"
