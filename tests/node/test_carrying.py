# SPDX-License-Identifier: BSD-2-Clause
"""Exports between two machines: who gets in, what arrives, and what a silent end does.

Both ends are real, over loopback; strangers speak TLS with the words that they have.
"""

import asyncio
import errno
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import pytest
import pytest_asyncio

from moorage.errors import BadInput, Failed
from moorage.node import carrying
from moorage.node.carrying import Carrier, Pace
from moorage.node.certificates import one_key
from moorage.node.host import Offer, Parcel
from moorage.node.machine import gate
from moorage.node.machine.turns import CURRENT, Step, Work
from moorage.protocol import Door, silent
from moorage.units import MIB

HERE = "127.0.0.1"
WAIT = 60.0
DATA = {"disk0.qcow2": os.urandom(700_001), "disk1.raw": b"", "disk2.raw": b"x" * 9}


class Disk:
    """Opens any path: what is opened where is tested with `Images`."""

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags)

    def create(self, path: str) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


class SlowDisk(Disk):
    """Makes a file when the test lets it.

    Attributes
    ----------
    asked, answers
        Whether it was asked for a file, and whether it makes it.
    """

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()

    def create(self, path: str) -> int:
        self.asked.set()
        self.answers.wait(WAIT)
        return super().create(path)


def parcels(at: Path, data: dict[str, bytes]) -> tuple[Parcel, ...]:
    return tuple(
        Parcel(str(at / name), len(text), sha256(text).hexdigest())
        for name, text in data.items()
    )


def offer(at: Path, data: dict[str, bytes] = DATA, rate: int = 0) -> Offer:
    return Offer("o1", parcels(at, data), HERE, 8102, rate)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    found = tmp_path / "source"
    found.mkdir()
    for name, text in DATA.items():
        (found / name).write_bytes(text)
    return found


@pytest.fixture
def target(tmp_path: Path) -> Path:
    found = tmp_path / "target"
    found.mkdir()
    return found


@pytest_asyncio.fixture
async def sender() -> AsyncIterator[Carrier]:
    found = Carrier(Disk())
    yield found
    found.withdraw("o1")
    await asyncio.sleep(0)


def arrived(target: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(target.iterdir())}


def open_files(under: Path) -> list[str]:
    links = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            links.append(str(one.readlink()))
    return [one for one in links if one.startswith(str(under))]


async def until(claim: Callable[[], bool]) -> None:
    for _ in range(round(WAIT / 0.01)):
        if claim():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come true in time")


async def refused(door: Door) -> None:
    with pytest.raises(Failed, match="no connection"):
        await gate.knock(socket.AF_INET, HERE, door.port, door.key)


async def test_files_arrive_whole_and_once(
    sender: Carrier, source: Path, target: Path
) -> None:
    door = await sender.offer(offer(source))
    said = list[tuple[int, int, str, str]]()
    taker = Carrier(Disk())
    await taker.fetch(
        parcels(target, DATA), HERE, door, lambda *told: said.append(told)
    )
    assert arrived(target) == DATA
    assert {told[3] for told in said} == {"fetch disk0.qcow2", "fetch disk2.raw"}
    await until(lambda: not open_files(source))
    await refused(door)


async def test_who_offers_anew_waits_behind_one_door(
    sender: Carrier, source: Path, target: Path
) -> None:
    """The master that asks again never got the first answer: nobody has that key."""
    first = await sender.offer(offer(source))
    second = await sender.offer(offer(source))
    assert len(open_files(source)) == len(DATA)
    with pytest.raises(Failed):
        await Carrier(Disk()).fetch(parcels(target, DATA), HERE, first, silent)
    await Carrier(Disk()).fetch(parcels(target, DATA), HERE, second, silent)
    assert arrived(target) == DATA


async def test_an_offer_stays_its_own_beside_another(
    sender: Carrier, source: Path, target: Path
) -> None:
    first = await sender.offer(offer(source))
    second = await sender.offer(offer(source)._replace(ident="o2"))
    sender.withdraw("o1")
    await refused(first)
    await Carrier(Disk()).fetch(parcels(target, DATA), HERE, second, silent)
    assert arrived(target) == DATA


async def test_what_is_appended_meanwhile_does_not_come_along(
    sender: Carrier, source: Path, target: Path
) -> None:
    door = await sender.offer(offer(source))
    with (source / "disk0.qcow2").open("ab") as file:
        file.write(b"more" * 100_000)
    await Carrier(Disk()).fetch(parcels(target, DATA), HERE, door, silent)
    assert arrived(target) == DATA


async def test_room_is_looked_for_as_long_as_there_is_something_to_come(
    monkeypatch: pytest.MonkeyPatch, sender: Carrier, source: Path, target: Path
) -> None:
    looked = list[tuple[int, str]]()

    def look(_file: int, left: int, path: str) -> None:
        looked.append((left, path))

    door = await sender.offer(offer(source))
    monkeypatch.setattr(carrying.export_files, "check_room", look)
    await Carrier(Disk()).fetch(parcels(target, DATA), HERE, door, silent)
    lefts = (700_010, 9, 9)
    paths = (str(target / name) for name in DATA)
    assert looked == list(zip(lefts, paths, strict=True))


async def test_what_is_told_of_the_way_does_not_grow_with_it(
    monkeypatch: pytest.MonkeyPatch, sender: Carrier, source: Path, target: Path
) -> None:
    """A master reads answers of so many bytes, and gives up on who says more."""
    much = {"disk0.raw": bytes(6 * MIB), "disk1.raw": b"x"}
    for name, text in much.items():
        (source / name).write_bytes(text)
    said = list[tuple[int, int, str, str]]()
    for most, least in ((1000, 6), (3, 3)):
        monkeypatch.setattr(carrying, "_REPORTS", most)
        said.clear()
        door = await sender.offer(offer(source, much))
        await Carrier(Disk()).fetch(
            parcels(target, much), HERE, door, lambda *told: said.append(told)
        )
        assert least <= len(said) <= least + len(much), said
        assert said[-1] == (6, 6, "MiB", "fetch disk1.raw")


async def test_who_has_another_key_gets_nothing_and_stops_nobody(
    sender: Carrier, source: Path, target: Path
) -> None:
    door = await sender.offer(offer(source))
    stranger = Door(port=door.port, key="ab" * 32)
    with pytest.raises(Failed, match="did not come whole"):
        await Carrier(Disk()).fetch(parcels(target, DATA), HERE, stranger, silent)
    assert sum(map(len, arrived(target).values())) == 0
    await Carrier(Disk()).fetch(parcels(target, DATA), HERE, door, silent)
    assert arrived(target) == DATA


async def test_who_only_heard_the_knock_reads_nothing(
    sender: Carrier, source: Path
) -> None:
    """An eavesdropper can say it again; without the key no TLS comes about."""
    door = await sender.offer(offer(source))
    known = await gate.knock(socket.AF_INET, HERE, door.port, door.key)
    context = one_key.context("cd" * 32, serves=False)
    context.verify_mode = ssl.CERT_NONE  # it takes whatever it is shown
    heard = b""
    with suppress(OSError), closing(known):
        reader, writer = await asyncio.open_connection(
            sock=known, ssl=context, server_hostname="x"
        )
        with closing(writer):
            heard = await asyncio.wait_for(reader.read(1), WAIT)
    assert heard == b""
    await until(lambda: not open_files(source))


async def test_who_stands_in_for_the_node_is_not_believed(target: Path) -> None:
    wanted = parcels(target, {"disk0.raw": b"0123456789"})
    async with Liar(b"0123456789", speaks="cd" * 32) as door:
        with pytest.raises(Failed, match="did not come whole"):
            await Carrier(Disk()).fetch(wanted, HERE, door, silent)
    assert not any(arrived(target).values())


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"too short", "hung up, after 9 of 20 bytes"),
        (b"not what it ought to be", "another checksum"),
        (b"0123456789abcdefghijk and more", ""),
    ],
    ids=["shorter", "other", "longer"],
)
async def test_no_other_bytes_than_the_manifest_says_are_taken(
    target: Path, sent: bytes, said: str
) -> None:
    wanted = parcels(target, {"disk0.raw": b"0123456789abcdefghij"})
    async with Liar(sent) as door:
        if said:
            with pytest.raises(Failed, match=said):
                await Carrier(Disk()).fetch(wanted, HERE, door, silent)
        else:
            await Carrier(Disk()).fetch(wanted, HERE, door, silent)
    assert len(arrived(target)["disk0.raw"]) <= wanted[0].size


async def test_a_length_that_is_none_takes_nothing(target: Path) -> None:
    wanted = (Parcel(str(target / "disk0.raw"), -5),)
    async with Liar(b"x" * 1000) as door:
        await Carrier(Disk()).fetch(wanted, HERE, door, silent)
    assert arrived(target) == {"disk0.raw": b""}


async def test_a_node_that_falls_silent_is_given_up(target: Path) -> None:
    wanted = parcels(target, {"disk0.raw": b"0123456789abcdefghij"})
    async with Liar(b"0123", hangs=True) as door:
        taker = Carrier(Disk(), silence=0.3)
        told = r"whole from 127\.0\.0\.1: nothing came for 0.3 s, after 4 of 20 b"
        with pytest.raises(Failed, match=told):
            await asyncio.wait_for(taker.fetch(wanted, HERE, door, silent), WAIT)


async def test_who_takes_nothing_is_hung_up_on(source: Path) -> None:
    much = {"disk0.raw": bytes(40 * MIB)}
    (source / "disk0.raw").write_bytes(much["disk0.raw"])
    sender = Carrier(Disk(), silence=0.3)
    door = await sender.offer(offer(source, much))
    known = await gate.knock(socket.AF_INET, HERE, door.port, door.key)
    context = one_key.context(door.key, serves=False)
    _, writer = await asyncio.open_connection(
        sock=known, ssl=context, server_hostname="x", limit=1
    )
    await until(lambda: not open_files(source))
    writer.transport.abort()


async def test_who_has_taken_all_and_stays_is_hung_up_on(source: Path) -> None:
    sender = Carrier(Disk(), silence=0.3)
    door = await sender.offer(offer(source, {"disk2.raw": DATA["disk2.raw"]}))
    known = await gate.knock(socket.AF_INET, HERE, door.port, door.key)
    context = one_key.context(door.key, serves=False)
    reader, writer = await asyncio.open_connection(
        sock=known, ssl=context, server_hostname="x"
    )
    assert await reader.readexactly(9) == DATA["disk2.raw"]
    await until(lambda: not open_files(source))
    writer.transport.abort()


async def test_nobody_comes_and_the_door_closes(
    monkeypatch: pytest.MonkeyPatch, source: Path
) -> None:
    monkeypatch.setattr(carrying, "OPEN", 0.1)
    door = await Carrier(Disk()).offer(offer(source))
    await until(lambda: not open_files(source))
    await until_closed(door)


async def test_an_offer_that_is_withdrawn_ends_in_the_middle(
    sender: Carrier, source: Path, target: Path
) -> None:
    door = await sender.offer(offer(source, rate=1))
    taker = Carrier(Disk())
    work = asyncio.create_task(taker.fetch(parcels(target, DATA), HERE, door, silent))
    await until(lambda: any(arrived(target).values()))
    sender.withdraw("o1")
    sender.withdraw("o1")  # twice is once
    with pytest.raises(Failed, match="did not come whole"):
        await asyncio.wait_for(work, WAIT)
    await until(lambda: not open_files(source))


@pytest.mark.parametrize("connected", [False, True])
async def test_an_offer_ends_with_the_keys_that_it_was_made_by(
    source: Path, target: Path, connected: bool
) -> None:
    """Whoever had stolen one would wait for the dumps, or go on to read them."""
    carrier = Carrier(Disk())
    CURRENT.set(Work(by=frozenset(["stolen", "another"])))
    door = await carrier.offer(offer(source, rate=1))
    taker = Carrier(Disk())
    work = asyncio.create_task(taker.fetch(parcels(target, DATA), HERE, door, silent))
    if connected:
        await until(lambda: any(arrived(target).values()))
    carrier.keep(lambda pins: "another" in pins)
    await asyncio.sleep(0.05)
    assert open_files(source)
    carrier.keep(lambda pins: "new" in pins)
    with pytest.raises(Failed):
        await asyncio.wait_for(work, WAIT)
    await until(lambda: not open_files(source))


async def test_an_offer_goes_on_that_the_master_with_a_new_key_knows(
    source: Path, target: Path
) -> None:
    carrier = Carrier(Disk())
    CURRENT.set(Work(by=frozenset(["old"])))
    door = await carrier.offer(offer(source))
    CURRENT.set(Work(by=frozenset(["new"])))
    carrier.adopt([door.digest])
    carrier.keep(lambda pins: "old" in pins)
    carrier.keep(lambda pins: "new" in pins)
    await Carrier(Disk()).fetch(parcels(target, DATA), HERE, door, silent)
    assert arrived(target) == DATA


async def test_what_nobody_asked_for_over_a_network_has_no_key(source: Path) -> None:
    carrier = Carrier(Disk())
    await carrier.offer(offer(source))
    carrier.keep(lambda _pins: False)
    await asyncio.sleep(0.05)
    assert open_files(source)
    carrier.withdraw("o1")
    await until(lambda: not open_files(source))


async def test_a_fetch_that_is_cancelled_leaves_nothing_open(
    sender: Carrier, source: Path, target: Path
) -> None:
    door = await sender.offer(offer(source, rate=1))
    work = asyncio.create_task(
        Carrier(Disk()).fetch(parcels(target, DATA), HERE, door, silent)
    )
    await until(lambda: any(arrived(target).values()))
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not open_files(target)
    await until(lambda: not open_files(source))


async def test_a_fetch_that_nobody_wants_any_more_is_ended(target: Path) -> None:
    """Its source need not help: that one may be anybody's, or out of reach."""
    wanted = parcels(target, {"disk0.raw": b"0123456789abcdefghij"})
    taker = Carrier(Disk())
    async with Liar(b"0123", hangs=True) as door:
        CURRENT.set(Work(frozenset(["export a1"]), Step(1, 7)))
        work = asyncio.create_task(taker.fetch(wanted, HERE, door, silent))
        await until(lambda: any(arrived(target).values()))
        assert taker.end(["export a2"], Step(1, 8)) == 0
        assert taker.end(["export a1"], Step(1, 6)) == 0
        assert taker.end(["export a1"], Step(1, 8)) == 1
        told = r"from 127\.0\.0\.1: nobody wants it any more, after \d of 20"
        with pytest.raises(Failed, match=told):
            await asyncio.wait_for(work, WAIT)
    assert taker.end(["export a1"], Step(1, 8)) == 0
    assert not open_files(target)


async def test_a_fetch_that_ends_while_a_file_is_made_leaves_nothing_open(
    sender: Carrier, source: Path, target: Path
) -> None:
    """A file server may take its time for that."""
    disk = SlowDisk()
    door = await sender.offer(offer(source))
    work = asyncio.create_task(
        Carrier(disk).fetch(parcels(target, DATA), HERE, door, silent)
    )
    await until(disk.asked.is_set)
    work.cancel()
    disk.answers.set()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert arrived(target)
    assert not open_files(target)


async def test_an_offer_whose_guest_cannot_be_talked_to_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, sender: Carrier, source: Path
) -> None:
    """Where no descriptors are left, say."""

    def none_left(*_: object, **__: object) -> ssl.SSLContext:
        raise OSError(errno.EMFILE, "Too many open files")

    door = await sender.offer(offer(source))
    monkeypatch.setattr(one_key, "context", none_left)
    with closing(await gate.knock(socket.AF_INET, HERE, door.port, door.key)):
        await until(lambda: not open_files(source))


async def test_a_dump_of_another_length_is_not_offered(
    sender: Carrier, source: Path
) -> None:
    (source / "disk2.raw").write_bytes(b"ten bytes!")
    with pytest.raises(Failed, match="has 10 bytes, and its manifest says 9"):
        await sender.offer(offer(source))
    assert not open_files(source)


async def test_an_address_that_is_not_here_is_told(
    sender: Carrier, source: Path
) -> None:
    told = "no port is free for an export on 192.0.2.1 from 8102 on: Cannot assign"
    with pytest.raises(Failed, match=told):
        await sender.offer(offer(source)._replace(address="192.0.2.1"))
    assert not open_files(source)


async def test_a_dump_that_shrinks_meanwhile_is_no_export(
    caplog: pytest.LogCaptureFixture, sender: Carrier, source: Path, target: Path
) -> None:
    door = await sender.offer(offer(source))
    shorter = source / "disk0.qcow2"
    os.truncate(shorter, 5)
    with pytest.raises(
        Failed, match=r"from 127\.0\.0\.1: the other node hung up, after"
    ):
        await Carrier(Disk()).fetch(parcels(target, DATA), HERE, door, silent)
    cause = f"{shorter} became shorter while it was sent"
    assert f"an export was not sent whole: {cause}" in caplog.messages


_NO_DOOR = "^an export comes from a port, behind a key, and nowhere else$"


@pytest.mark.parametrize(
    ("address", "door", "told"),
    [
        (HERE, Door(port=1, place="/etc"), _NO_DOOR),
        (HERE, Door(port=1), _NO_DOOR),
        ("localhost", Door(port=1, key="ab" * 32), "'localhost' is no address that"),
        ("fe80::1%lo", Door(port=1, key="ab" * 32), "'fe80::1%lo' is no address that"),
    ],
)
async def test_an_export_comes_from_an_address_behind_a_key(
    address: str, door: Door, told: str, target: Path
) -> None:
    with pytest.raises(BadInput, match=told):
        await Carrier(Disk()).fetch(parcels(target, DATA), address, door, silent)


async def test_no_piece_passes_before_its_time() -> None:
    now, slept = [100.0], list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(2, lambda: now[0], sleep)
    passed = 0
    for size in (MIB, 1, MIB // 2, 4 * MIB):
        await pace.wait(size)
        passed += size
        assert passed <= (now[0] - 100.0) * 2 * MIB + 0.001
    assert sum(slept) == pytest.approx(passed / (2 * MIB))
    await Pace(0, lambda: now[0], sleep).wait(1 << 40)
    assert len(slept) == 4


# -- who is not what it seems ----------------------------------------------------------


class Liar:
    """A node that offers something, and sends what it likes to who has the key.

    Parameters
    ----------
    speaks
        The key of its TLS; the right one if it is empty.
    """

    def __init__(self, sent: bytes, *, hangs: bool = False, speaks: str = "") -> None:
        self._sent = sent
        self._hangs = hangs
        self._speaks = speaks

    async def __aenter__(self) -> Door:
        key = "ef" * 32
        listener = gate.listen(socket.AF_INET, HERE, range(1))
        self._over = asyncio.Event()
        self._gate = gate.Gate(listener, key, self._take(self._speaks or key))
        return Door(port=self._gate.port, key=key)

    def _take(self, key: str) -> gate.Taker:
        async def take(connection: socket.socket) -> None:
            context = one_key.context(key, serves=True)
            talk = carrying._talk(connection.dup(), context, serves=True)
            async with talk as (reader, writer):
                writer.write(self._sent)
                await writer.drain()
                if self._hangs:
                    await self._over.wait()
                else:
                    writer.close()
                    await reader.read(1)

        return take

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        self._gate.close()


async def until_closed(door: Door) -> None:
    async with asyncio.timeout(WAIT):
        while True:
            try:
                (await gate.knock(socket.AF_INET, HERE, door.port, door.key)).close()
            except Failed:
                return
            await asyncio.sleep(0.01)
