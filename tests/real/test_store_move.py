# SPDX-License-Identifier: BSD-2-Clause
"""The state moves from SQLite to a real etcd and back, killed at each moment."""

import asyncio
import io
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from moorage import durable
from moorage.api.luxi import LuxiClient
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, moving, process, store_move
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces
from moorage.errors import Exists, Refused, WrongState
from moorage.model.commits import Key
from moorage.store import (
    Elsewhere,
    SqliteStore,
    create,
    etcd_of,
    inspect,
    store_at,
)
from moorage.store.etcd import EtcdStore
from moorage.testing.cluster import ClusterBuilder
from support.etcd_members import Members, members
from support.masters import Account, copied, on, places

pytestmark = pytest.mark.real
LONG = 60.0
KILLED = 9


@pytest.fixture(scope="module")
def etcd() -> Iterator[Members]:
    with members() as found:
        yield found


def word(etcd: Members, prefix: str) -> str:
    hosts = ",".join(url.removeprefix("http://") for url in etcd.clients)
    return f"etcd://{hosts}/{prefix}"


def file_of(etcd: Members, prefix: str, at: Path) -> str:
    hosts = ", ".join(f'"{url}"' for url in etcd.clients)
    file = at / f"{prefix}.json"
    file.write_text(f'{{"endpoints": [{hosts}], "prefix": "/{prefix}", "lease": 2}}')
    return str(file)


# -- killed at each moment -----------------------------------------------------------

MOMENTS = (
    (durable, "write"),
    (durable, "remove"),
    (durable, "sync"),
    (SqliteStore, "lead"),
    (EtcdStore, "lead"),
    (EtcdStore, "fill"),
    (EtcdStore, "leave"),
    (EtcdStore, "whole"),
    (store_move, "lay"),
    (moving, "leave"),
)
"""What a move does one after the other; it is killed before each call."""


DECIDED = ((moving, "came"),)
"""Of a move to SQLite: it is decided, and nothing was done about it here."""


def _killed(
    places: MasterPlaces, where: str, number: int, moments: Sequence[tuple[object, str]]
) -> None:
    """Move, and die before the call of that number."""
    left = [number]

    def dying(does: object) -> object:
        def called(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os._exit(KILLED)
            return does(*args, **kwargs)  # type: ignore[operator]

        return called

    wanted = store_move.plan(places, where)
    for owner, name in moments:
        setattr(owner, name, dying(getattr(owner, name)))
    store_move.carry_out(places, wanted)
    os._exit(0)


def move(
    places: MasterPlaces,
    where: str,
    number: int,
    moments: Sequence[tuple[object, str]] = MOMENTS,
) -> bool:
    """Return whether a move came to its end before it was to be killed."""
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=_killed, args=(places, where, number, moments))
    child.start()
    child.join(LONG)
    assert child.exitcode in (0, KILLED), number
    return child.exitcode == 0


def leads(places: MasterPlaces) -> tuple[bool, dict[Key, bytes], int]:
    """Start as a master does; return whether in etcd, all records, and the term."""

    async def led() -> tuple[dict[Key, bytes], int]:
        store = store_at(places.store)
        until = asyncio.get_running_loop().time() + LONG
        try:
            while asyncio.get_running_loop().time() < until:
                try:
                    term = await store.lead()
                except Elsewhere as error:
                    if not moving.came(places, error):
                        raise
                    await store.close()
                    store = store_at(places.store)
                    continue
                except Refused:  # the lease of who was killed
                    await asyncio.sleep(0.1)
                    continue
                return dict((await store.load()).records), term
            raise AssertionError("nobody leads")
        finally:
            await store.close()

    found = asyncio.run(led())
    return etcd_of(places.store) is not None, *found


class Walk:
    """A cluster that is moved, each try to a prefix that nobody has used."""

    def __init__(self, etcd: Members, at: Path, name: str) -> None:
        self.name = name
        self.places = MasterPlaces(at / "m")
        self._etcd, self._at, self._used = etcd, at, 0

    def target(self, *, to_etcd: bool) -> str:
        begun = moving.noted(self.places)
        if not (begun and begun.etcd):
            self._used += 1
        where = file_of(self._etcd, f"p{self.name}{self._used}", self._at)
        return where if to_etcd else store_move.SQLITE

    def whole(self, *, to_etcd: bool) -> None:
        """Type the command, again if it is the second time; nobody kills it."""
        if moving.noted(self.places) or in_etcd(self.places) != to_etcd:
            wanted = store_move.plan(self.places, self.target(to_etcd=to_etcd))
            store_move.carry_out(self.places, wanted)
        assert in_etcd(self.places) == to_etcd
        assert not self.places.moving.exists()
        assert self.places.store.exists() != to_etcd


def in_etcd(places: MasterPlaces) -> bool:
    return etcd_of(places.store) is not None


async def _made(places: MasterPlaces) -> None:
    store = SqliteStore(places.store)
    await create(store, ClusterBuilder(nodes=2).change())
    await store.close()


def test_what_was_begun_is_taken_back(etcd: Members, tmp_path: Path) -> None:
    """Another move is refused meanwhile; the prefix in etcd is empty afterwards."""
    walk = Walk(etcd, tmp_path, "back")
    places = walk.places
    asyncio.run(_made(places))
    where = walk.target(to_etcd=True)
    assert not move(places, where, 0, ((durable, "write"), (store_move, "_compare")))
    assert not moving.noted(places)
    assert not move(places, where, 0, ((store_move, "_compare"),))
    with pytest.raises(WrongState, match="was begun here, and did not end"):
        store_move.plan(places, file_of(etcd, "other", tmp_path))
    store_move.carry_out(places, store_move.plan(places, store_move.SQLITE))
    assert not moving.noted(places)
    left = etcd.keys()
    assert [one for one in left if one.startswith(b"/pback1/")] == []
    with pytest.raises(Exists, match="already"):
        store_move.plan(places, store_move.SQLITE)


@pytest.mark.parametrize("to_etcd", [True, False])
def test_it_is_killed_at_each_moment_and_typed_again(
    etcd: Members, tmp_path: Path, to_etcd: bool
) -> None:
    """One store leads each time, with all records and a higher term; then it ends."""
    walk = Walk(etcd, tmp_path, f"{to_etcd}")
    asyncio.run(_made(walk.places))
    _, before, term = leads(walk.places)
    sides, ended, number = set(), False, 0
    while not ended:
        walk.whole(to_etcd=not to_etcd)
        ended = move(walk.places, walk.target(to_etcd=to_etcd), number)
        there, records, now = leads(walk.places)
        assert records == before, number
        assert now > term, number
        sides.add(there)
        walk.whole(to_etcd=to_etcd)
        term, number = now, number + 1
    assert sides == {True, False}
    assert number > 8


# -- a cluster that works meanwhile ----------------------------------------------------


@pytest.fixture
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    at = tmp_path_factory.mktemp("town") / "c"
    made = devcluster.up(at, nodes=2, hypervisor="sim")
    yield made
    devcluster.down(at)


def term_of(town: Scratch) -> int:
    found = inspect(town.master.store, live=True)
    assert found.faults == []
    return found.term


def test_a_cluster_moves_there_and_back_while_jobs_come(
    town: Scratch, etcd: Members, tmp_path: Path
) -> None:
    """Guests go on, jobs that wait run afterwards, terms rise, copies go and come."""
    hands = Typist(town.environment(), io.StringIO())
    hands.type("gnt-instance add -t sharedfile -s 32M --no-install web1")
    assert process.wait_until(lambda: copied(hands, "node2"), LONG)
    state = town.node("node2").run / "state"
    where = file_of(etcd, "town", tmp_path)
    assert "records" in hands.type(f"moorage store move --dry-run {where}")
    assert town.master.store.exists()
    moves(town, hands, where)
    assert process.wait_until(partial(lacks, state / "current"), LONG)
    assert (state / "keys" / "own.pem").exists()
    assert "already" in hands.refused(f"moorage store move {where}")
    waits = places(town, "node2")
    other = on(town, "node2")
    other.type(f"moorage master wait --store {town.master.etcd}")
    moves(town, hands, store_move.SQLITE)
    assert process.wait_until(lambda: not process.holder(waits.lock), LONG)
    assert "the state was moved from etcd://" in waits.log.read_text()
    other._run("moorage master stop", shown=False)
    assert process.wait_until(lambda: copied(hands, "node2"), LONG)
    assert "there is a cluster in" in hands.refused(f"moorage store move {where}")
    obeys_none(town, hands)
    ends_by_itself(town, hands, file_of(etcd, "again", tmp_path))


def ends_by_itself(town: Scratch, hands: Typist, where: str) -> None:
    """A master that starts ends a move that was decided, and killed."""
    hands.type(f"moorage store move {where}")
    hands.type("moorage master stop")
    assert not move(town.master, store_move.SQLITE, 0, DECIDED)
    assert not town.master.store.exists()
    hands.type("moorage master start")
    assert town.master.store.exists()
    assert "ERROR" not in hands.type("gnt-cluster verify")
    assert "is in" in hands.refused("moorage store move sqlite")


def moves(town: Scratch, hands: Typist, target: str) -> None:
    """Move while somebody adds disks, and while a job runs and another one waits."""
    term, prefix = term_of(town), target[-4:].strip(".")
    account = Account(town.master, prefix=prefix)
    assert process.wait_until(partial(more, account, 3), LONG)
    delay = {"OP_ID": "OP_TEST_DELAY", "duration": 2.0, "on_master": True}
    with LuxiClient(str(town.master.socket)) as luxi:
        runs = luxi.submit_job([delay])
        waits = luxi.submit_job([delay | {"depends": [[runs, ["success"]]]}])
    hands.type(f"moorage store move {target}")
    account.ended()
    assert hands._run(f"gnt-job watch {waits}", shown=False).returncode == 0
    (job,) = hands.ask(f"gnt-job list -o id,status {waits}")
    assert job["status"] == "success"
    disks = {one["name"] for one in hands.ask("gnt-disk list -o name")}
    assert disks >= set(account.acknowledged)
    (row,) = hands.ask("gnt-instance list -o name,status")
    assert row["status"] == "running"
    assert "ERROR" not in hands.type("gnt-cluster verify")
    assert "No problem" in hands.type("moorage master check")
    assert term_of(town) > term


def more(account: Account, much: int) -> bool:
    return len(account.acknowledged) > much


def lacks(path: Path) -> bool:
    return not path.exists()


def obeys_none(town: Scratch, hands: Typist) -> None:
    """A master that is started on either of the former stores says where it went."""
    root = town.master.root
    hands.type("moorage master stop")
    (old,) = root.glob("moved-to-sqlite-*/etcd.json")
    (former,) = root.glob("moved-to-etcd-*/state.sqlite")
    town.master.etcd.write_bytes(old.read_bytes())
    assert "the state was moved from etcd://" in hands.refused("moorage master start")
    town.master.etcd.unlink()
    there = town.master.store.replace(root / "kept")
    former.replace(town.master.store)
    said = hands.refused("moorage master start")
    assert "the state was moved from" in said
    assert "etcd://" in said
    there.replace(town.master.store)
    hands.type("moorage master start")
