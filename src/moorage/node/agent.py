# SPDX-License-Identifier: BSD-2-Clause
"""The node agent: runs verbs, refuses what comes too late, keeps no truth.

Every verb is idempotent. Verbs on one disk, volume or guest wait for each other, so a
step that is taken back while it still runs is taken back after it; one that arrives
after it was taken back is refused.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from socket import socket
from typing import Any, NamedTuple

from msgspec import ValidationError, convert, to_builtins

from moorage.errors import BadInput, Stale, WrongState
from moorage.model.hostnames import lowered, short_for
from moorage.protocol import Report, TrustMasters, Verb, WantLead, disks_in
from moorage.protocol.line import GuestLine
from moorage.protocol.sender import Sender
from moorage.storage import check_made

from .certificates.keys import Keys, listed
from .doors.tickets import Tickets
from .host import Machine
from .hypervisors.base import Hypervisor
from .machine.turns import CURRENT, Step, Turns, Work
from .records.attachments import Attachments
from .records.copies import Copies
from .records.creations import Creations, volume_key
from .records.drafts import Drafts
from .records.fence import Fence
from .records.leader import Leaders
from .records.trials import Trials
from .verbs import VERBS, NodeContext
from .verbs.backup import sweep


class Speaker(NamedTuple):
    """Who asks, as a node knows it.

    Attributes
    ----------
    mark
        Of the process that counts its requests; empty if it does not say.
    pins
        Of the keys that the master is known by; none where no network is used.
    """

    mark: str = ""
    pins: frozenset[str] = frozenset()


NOBODY = Speaker()
"""Whoever asks without a network."""


class Agent:
    """The agent of one node.

    Parameters
    ----------
    name
        Name of the node; scripts see it.
    run_dir
        What the agent must find again when it is killed and started.
    leave
        Called when the node leaves its cluster.
    keys
        What it serves with; None where it is not asked over a network.
    """

    def __init__(
        self,
        name: str,
        run_dir: Path,
        machine: Machine,
        hypervisors: Mapping[str, Hypervisor],
        leave: Callable[[], None] = lambda: None,
        keys: Keys | None = None,
    ) -> None:
        self.name = name
        self._machine = machine
        self._leaders = Leaders(run_dir)
        self._fence = Fence(run_dir / "fence")
        self._turns = Turns()
        self._context = NodeContext(
            name=name,
            machine=machine,
            hypervisors=hypervisors,
            attachments=Attachments(run_dir / "held", machine.memory().bootid),
            creations=Creations(run_dir / "makings"),
            drafts=Drafts(run_dir / "drafts"),
            trials=Trials(run_dir / "trials"),
            fence=self._fence,
            leave=leave,
            keys=keys,
            tickets=Tickets(keys) if keys else None,
            leaders=self._leaders,
            copies=Copies(run_dir / "state"),
        )
        if keys:
            # As tickets: who had an export offered may have been a thief.
            keys.taken_back.append(lambda: machine.keep(keys.believes))

    async def begin(self) -> None:
        """Do away with what an agent that died left half made; before it serves."""
        await sweep(self._context)

    def hear(
        self, term: int, mark: str, sender: Sender, pins: frozenset[str] = frozenset()
    ) -> None:
        """Raise `Stale` if the master is not the one that leads in its term.

        Parameters
        ----------
        pins
            Of the keys that the master is known by; none where no network is used.
        """
        self.obey(term, pins)
        self._fence.pass_leader(term, mark)
        self._leaders.hear(term, sender)

    def obey(self, term: int, pins: frozenset[str]) -> None:
        """Raise `Stale` if another key leads in the term, or a later one."""
        self._fence.pass_term(term)
        if pins:
            self._fence.pass_keys(term, pins)

    def speaker(self, shown: bytes) -> frozenset[str]:
        """Return the pins that the master with a certificate (DER) is known by.

        Raises
        ------
        Stale
            If its key may give orders no more.
        """
        keys = self._context.keys
        pins = keys.speaker(shown) if keys else frozenset()
        if keys and not pins:
            newest = self._leaders.newest
            raise Stale(
                f"node {self.name} takes orders of this master's key no more: it was "
                "taken back, or another master has followed",
                hint="gnt-cluster getmaster",
                term=self._fence.term,
                led=newest.term if newest else 0,
                leader=self.master,
            )
        return pins

    @property
    def master(self) -> str:
        """Name of the master's node, as it said last; empty if it never did."""
        newest = self._leaders.newest
        return newest.sender.node if newest else ""

    def _check_masters(self, call: TrustMasters, pins: frozenset[str]) -> None:
        """Refuse a list without the master that tells it: nobody could mend it."""
        if pins.isdisjoint(listed(call.certificates)):
            raise BadInput(
                f"the masters that node {self.name} is told to obey are without the "
                "one that tells it"
            )

    def _check_wish(self, pins: frozenset[str]) -> None:
        """Refuse the wish to lead from another key than this node would lead with."""
        if self._context.copies.asks_with() not in pins:
            raise WrongState(
                f"that node {self.name} is to lead is said with its own key alone",
                hint=f"on {self.name}: gnt-cluster master-failover",
            )

    async def line(self, wanted: GuestLine, term: int = 0) -> socket:
        """Return a connection to a guest's console or screen.

        Parameters
        ----------
        term
            Of the master that asks; 0 for a person on this machine.
        """
        if term:
            self._fence.pass_term(term)
        found = self._context.hypervisor(wanted.hypervisor)
        return await found.connect(wanted.uuid, wanted.kind, wanted.ticket)

    async def guest(self, word: str) -> GuestLine | None:
        """Return the line to the guest that a word stands for, if one runs here."""
        here = {
            guest.name: GuestLine(uuid=guest.uuid, name=guest.name, hypervisor=kind)
            for kind, hypervisor in self._context.hypervisors.items()
            for guest in await hypervisor.guests()
        }
        short = short_for(word, here)
        names = [lowered(word)] if lowered(word) in here else short
        return here[names[0]] if len(names) == 1 else None

    async def close(self) -> None:
        """Wait for nobody with a ticket any more, and hang up on who came with one."""
        if self._context.tickets:
            await self._context.tickets.close()

    async def handle(
        self,
        verb: str,
        args: Mapping[str, Any],
        term: int,
        report: Report,
        number: int = 0,
        speaker: Speaker = NOBODY,
    ) -> Any:  # noqa: ANN401
        """Run a verb and return its result as JSON values.

        Parameters
        ----------
        number
            Of the request, which rises within the term; 0 if nobody counts.

        Raises
        ------
        BadInput
            If there is no such verb, or its arguments are off.
        Stale
            If the term, an epoch or the number is of the past.
        MoorageError
            What the verb raised.
        """
        if verb not in VERBS:
            raise BadInput(f"the agent has no verb '{verb}'", known=sorted(VERBS))
        kind, function = VERBS[verb]
        try:
            call = convert(args, kind)
        except ValidationError as error:
            raise BadInput(f"{verb}: {error}") from None
        self._admit(call, term, speaker.pins)
        step = Step(term, number, speaker.mark)
        objects = call.touched() | {volume_key(disk) for disk in call.volumes()}
        if not objects:
            CURRENT.set(Work(step=step, by=speaker.pins))
            return to_builtins(await function(self._context, call, report))
        async with self._turns.take(objects, step, speaker.pins):
            await self._machine.settle(objects)
            self._fence.pass_term(term)
            for disk in call.fencing():
                self._fence.pass_disk(disk)
            return to_builtins(await function(self._context, call, report))

    def _admit(self, call: Verb[Any], term: int, pins: frozenset[str]) -> None:
        """Raise an error unless a call makes sense, and comes from who may give it."""
        for disk in disks_in(call):
            check_made(disk)
        if call.takes_term:
            self._fence.promise_term(term)
        if call.heeds_term:
            self.obey(term, pins)
        if isinstance(call, TrustMasters) and pins:
            self._check_masters(call, pins)
        if isinstance(call, WantLead) and pins:
            self._check_wish(pins)
