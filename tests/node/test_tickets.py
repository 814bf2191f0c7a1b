# SPDX-License-Identifier: BSD-2-Clause
"""Tickets for consoles: used once, over soon, and good for no other node."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from moorage.cli.gnt_instance import ticket as bearer
from moorage.errors import BadInput, Failed, MoorageError, Unreachable, WrongState
from moorage.model.token import Ticket, ticket_from_text, to_text
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import Keys
from moorage.node.doors.tickets import Tickets
from moorage.protocol.line import Drawn

HERE = "127.0.0.1"


class Guest:
    """A console: what is said to it, and what it says."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.settimeout(60)

    async def connect(self) -> socket.socket:
        """Return the agent's end."""
        return self.theirs


@pytest.fixture
def guest() -> Iterator[Guest]:
    """Return a console that nobody is at."""
    made = Guest()
    with closing(made.ours), closing(made.theirs):
        yield made


@pytest.fixture
def keys(served: Any) -> Keys:
    """Return the keys of a node that was let in."""
    return Keys(served.keys)


@pytest.fixture
async def tickets(keys: Keys) -> AsyncIterator[Tickets]:
    """Return what draws tickets."""
    made = Tickets(keys)
    yield made
    await made.close()


def word(drawn: Drawn, **other: Any) -> str:
    given = {"instance": "web1.example.com", "address": HERE, "port": drawn.port}
    given |= {"fingerprint": drawn.fingerprint, "secret": drawn.secret}
    return to_text(Ticket(**given | other))


async def shown(text: str, name: str = "web1") -> socket.socket:
    """Bring a ticket; return the line."""
    link, told = await asyncio.to_thread(bearer.connect, text, name)
    assert told == "web1.example.com"
    return link


TOLD = {"instance": "web1.example.com", "node": "node1"}


async def test_a_ticket_carries_bytes_both_ways(tickets: Tickets, guest: Guest) -> None:
    drawn = tickets.draw(HERE, TOLD, guest.connect)
    with await shown(word(drawn)) as link:
        await asyncio.to_thread(link.sendall, b"root\n")
        assert await asyncio.to_thread(guest.ours.recv, 5) == b"root\n"
        guest.ours.sendall(b"login: ")
        assert await asyncio.to_thread(link.recv, 100) == b"login: "
        guest.ours.close()
        assert await asyncio.to_thread(link.recv, 100) == b""


async def test_the_log_says_who_drew_it_and_who_came(
    tickets: Tickets, guest: Guest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    drawn = tickets.draw(HERE, TOLD, guest.connect, "uid 0, pid 7")
    (await shown(word(drawn))).close()
    async with asyncio.timeout(60):
        while len(caplog.messages) < 3:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
    console = "the console of web1.example.com"
    by = "drawn by uid 0, pid 7, at the master"
    came = f"who came from {HERE} with a ticket that was {by}"
    assert caplog.messages == [
        f"a ticket for {console} was {by}",
        f"{console} is opened by {came}",
        f"{console} is closed after 0 s: it was opened by {came}",
    ]


async def test_it_is_good_once(tickets: Tickets, guest: Guest) -> None:
    drawn = tickets.draw(HERE, TOLD, guest.connect)
    link = await shown(word(drawn))
    with link, pytest.raises(Unreachable, match="it was used, or is over"):
        await shown(word(drawn))


async def test_it_is_over_soon(keys: Keys, guest: Guest) -> None:
    drawn = Tickets(keys, lasts=0).draw(HERE, TOLD, guest.connect)
    await asyncio.sleep(0.01)  # its timer has no later moment than this
    with pytest.raises(Unreachable, match="it was used, or is over"):
        await shown(word(drawn))


async def test_what_a_key_drew_ends_when_it_is_taken_back(
    keys: Keys, tickets: Tickets, guest: Guest, other_authority: Authority
) -> None:
    """Whoever had stolen it may sit at a console, and have tickets for more."""
    another = Guest()
    with closing(another.ours), closing(another.theirs):
        drawn = tickets.draw(HERE, TOLD, guest.connect)
        later = tickets.draw(HERE, TOLD, another.connect)
        (ours,) = tls.load_all((keys.directory / "ca.pem").read_bytes())
        new = other_authority.own
        with await shown(word(drawn)) as link:
            keys.trust(_texts(ours, new))  # one more takes none away
            guest.ours.sendall(b"login: ")
            assert await asyncio.to_thread(link.recv, 100) == b"login: "
            keys.trust(_texts(new))
            with suppress(ConnectionResetError):
                assert await asyncio.to_thread(link.recv, 100) == b""
        with pytest.raises(Unreachable, match="it was used, or is over"):
            await shown(word(later))


def _texts(*certificates: tls.Certificate) -> tuple[str, ...]:
    return tuple(tls.pem(one).decode() for one in certificates)


async def test_a_stranger_uses_nothing_up(tickets: Tickets, guest: Guest) -> None:
    """Who does not know the secret is hung up on, and its holder still gets in."""
    drawn = tickets.draw(HERE, TOLD, guest.connect)
    with pytest.raises(Unreachable, match="it hung up"):
        await shown(word(drawn, secret="x" * 32))
    (await shown(word(drawn))).close()


async def test_nothing_is_said_to_somebody_else(tickets: Tickets, guest: Guest) -> None:
    """Who took the address shows another certificate, and never hears the secret."""
    drawn = tickets.draw(HERE, TOLD, guest.connect)
    with pytest.raises(Failed, match="not the node that drew the ticket"):
        await shown(word(drawn, fingerprint="0" * 64))


async def test_what_the_guest_says_no_to_is_told(tickets: Tickets) -> None:
    async def refuse() -> socket.socket:
        raise WrongState("somebody is at the console of web1: it has one line only")

    drawn = tickets.draw(HERE, TOLD, refuse)
    with pytest.raises(MoorageError, match="somebody is at the console"):
        await shown(word(drawn))


def test_the_agents_own_door_stays_closed_to_strangers(keys: Keys) -> None:
    context, _ = keys.for_strangers()
    assert context.verify_mode is ssl.CERT_NONE
    assert keys.context.now.verify_mode is ssl.CERT_REQUIRED


async def test_an_agent_that_ends_hangs_up(tickets: Tickets, guest: Guest) -> None:
    used, unused = (tickets.draw(HERE, TOLD, guest.connect) for _ in range(2))
    with await shown(word(used)) as link:
        await tickets.close()
        assert await asyncio.to_thread(link.recv, 100) == b""
    with pytest.raises(Unreachable):
        await shown(word(unused))


@pytest.mark.parametrize("text", ["", "x", "eyJ4", "é", "e30", "W10"])
def test_what_is_no_ticket_is_told(text: str) -> None:
    with pytest.raises(BadInput, match="is no ticket of a console"):
        ticket_from_text(text)


async def test_an_open_console_keeps_no_port(
    tickets: Tickets, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sits at one for hours does not keep others from theirs."""
    port = tickets.draw(HERE, TOLD, guest.connect).port
    await tickets.close()
    monkeypatch.setattr("moorage.node.doors.tickets.PORTS", range(port, port + 1))
    other = Guest()
    with closing(other.ours), closing(other.theirs):
        first = await shown(word(tickets.draw(HERE, TOLD, guest.connect)))
        await asyncio.sleep(0.05)  # its listener is closed
        second = await shown(word(tickets.draw(HERE, TOLD, other.connect)))
        with first, second:
            await asyncio.to_thread(second.sendall, b"b")
            assert await asyncio.to_thread(other.ours.recv, 5) == b"b"
            await asyncio.to_thread(first.sendall, b"a")
            assert await asyncio.to_thread(guest.ours.recv, 5) == b"a"


async def test_two_tickets_that_wait_have_two_ports(
    tickets: Tickets, guest: Guest
) -> None:
    drawn = [tickets.draw(HERE, TOLD, guest.connect) for _ in range(3)]
    assert len({one.port for one in drawn}) == 3


async def test_when_all_ports_wait_it_says_for_how_long(
    tickets: Tickets, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = tickets.draw(HERE, TOLD, guest.connect)
    monkeypatch.setattr(
        "moorage.node.doors.tickets.PORTS", range(drawn.port, drawn.port + 1)
    )
    with pytest.raises(Failed, match="no port is free for a console") as told:
        tickets.draw(HERE, TOLD, guest.connect)
    assert told.value.hint == (
        "its ports wait for those who drew 1 ticket; each is over 120 seconds after it "
        "was drawn"
    )
    (await shown(word(drawn))).close()  # the first is as good as before


async def test_strangers_that_say_nothing_are_few_and_keep_nobody_out(
    tickets: Tickets, guest: Guest
) -> None:
    """Each costs a third of a megabyte, and seconds, until it is hung up on."""
    drawn = tickets.draw(HERE, TOLD, guest.connect)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    silent = [
        await asyncio.open_connection(HERE, drawn.port, ssl=context) for _ in range(40)
    ]
    (door,) = tickets._doors
    await asyncio.sleep(0.05)
    assert len(door.heard) <= 32
    with await shown(word(drawn)) as link:
        await asyncio.to_thread(link.sendall, b"root\n")
        assert await asyncio.to_thread(guest.ours.recv, 5) == b"root\n"
    for _, writer in silent:
        writer.transport.abort()
