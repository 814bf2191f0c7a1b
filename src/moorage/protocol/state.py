# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on the copies of the master's state, and on who leads.

A candidate keeps a copy of the store, and a key of its own: with them it can become the
master.
"""

from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct

from moorage.model.commits import Head, Key, Logged, Write
from moorage.model.store_trouble import StoreTrouble

from .verb import AtMaster, Reading, Verb

_COPY = "state-copy"
R_co = TypeVar("R_co", covariant=True)


class Standing(Struct, frozen=True, kw_only=True):
    """What a node has heard of masters, and what it keeps for the next one.

    Attributes
    ----------
    term
        The highest that it has heard.
    leader
        Name of the node of the master that it heard last; empty if it knows of none.
    silent
        Seconds for which that one has been silent; None if the agent has not heard it
        since it was started.
    copy
        Where its copy of the state stands; None if it has none.
    led
        Term of the master that it heard last; 0 if it knows of none. A term may be
        promised to a candidate that never leads.
    confirmed
        Seconds since the master said that the copy is whole; None if it has not since
        the agent was started.
    software
        Version of its Moorage.
    wants
        Whether somebody on the node asks the master to let it lead.
    released
        Where the store of the master stood that let it lead; None if none did.
    key
        Pin of the key that it can lead with, as a candidate; empty if it has none.
    """

    term: int
    led: int = 0
    leader: str = ""
    silent: float | None = None
    copy: Head | None = None
    confirmed: float | None = None
    software: str = ""
    wants: bool = False
    released: Head | None = None
    key: str = ""


class GetStanding(Reading[Standing], frozen=True, tag="state.standing"):
    """Return what the node has heard of masters; whoever asks need not lead."""

    heeds_term = False


class WantLead(Reading[None], frozen=True, kw_only=True, tag="state.want"):
    """Note that the node, a candidate, is to be the next master; it need not lead yet.

    The living master reads it where the copy is whole, and ends as planned. Nothing but
    memory is changed. The node's own key says it, and no other: none can make a master
    end for a node that does not ask for that.

    Attributes
    ----------
    seconds
        How long the wish stands, 600 at most; 0 to take it back.
    """

    heeds_term = False

    seconds: Annotated[float, Meta(ge=0, le=600)]


class Portion(Struct, frozen=True, kw_only=True):
    """Some records of a copy, in their order.

    Attributes
    ----------
    head
        Where the copy stands.
    more
        Whether others come after them.
    """

    head: Head
    records: tuple[Write, ...] = ()
    more: bool = False


class ReadCopy(Reading[Portion], frozen=True, kw_only=True, tag="state.read"):
    """Return records of the copy; a candidate that became the master needs them.

    Attributes
    ----------
    after
        The last record that is known.
    """

    heeds_term = False
    limit = 60.0
    long = True

    after: Key = ("", "")


class OnCopy(Verb[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A step on the node's copy: none overtakes another one.

    Commits wait for it, and it is asked again anyway.
    """

    limit = 60.0
    insists = False

    def touched(self) -> frozenset[str]:
        """Return the copy."""
        return frozenset({_COPY})


class HeedTerm(OnCopy[Standing], frozen=True, tag="state.heed"):
    """Take orders of no earlier master from now on; return what the node has heard.

    Steps on its copy that had begun are over.
    """

    limit = 30.0
    takes_term = True


class ApplyCommits(OnCopy[Head | None], frozen=True, kw_only=True, tag="state.apply"):
    """Make the copy follow some commits; return where it stands then.

    It is unchanged where it does not stand at `after`. Without commits the step says
    that a copy which stands there is whole.

    Attributes
    ----------
    after
        Where the store stood before the first of them.
    more
        Whether the copy lacks others after them.
    """

    after: Head
    commits: tuple[Logged, ...] = ()
    more: bool = False


class ReleaseLead(OnCopy[None], frozen=True, kw_only=True, tag="state.release"):
    """Note that the master has ended, and lets this node lead.

    Attributes
    ----------
    head
        Where its store stands: the copy has all of it.
    """

    head: Head


class BeginCopy(OnCopy[None], frozen=True, kw_only=True, tag="state.begin"):
    """Begin a new copy beside the one that counts.

    Attributes
    ----------
    format
        Of the master's store.
    """

    format: int


class AddRecords(OnCopy[None], frozen=True, kw_only=True, tag="state.add"):
    """Add records to the copy that was begun."""

    records: tuple[Write, ...]


class SealCopy(OnCopy[Head], frozen=True, kw_only=True, tag="state.seal"):
    """Let the copy that was begun be the one that counts, if it is whole.

    Attributes
    ----------
    head
        Where the store stood.
    """

    head: Head


class KeepKeys(OnCopy[None], frozen=True, kw_only=True, tag="state.keys"):
    """Keep the certificates of the authorities that signed the nodes.

    Attributes
    ----------
    files
        Each by its name; others are forgotten.
    """

    files: dict[str, bytes]


class CheckCopy(OnCopy[list[str]], frozen=True, tag="state.check"):
    """Read the whole copy, and return what is wrong with it, in words."""

    limit = 300.0


class DropCopy(OnCopy[None], frozen=True, tag="state.drop"):
    """Forget the copy and the key: the node is no candidate any more."""


class CopyStatus(Struct, frozen=True, kw_only=True):
    """What the master knows of one candidate's copy.

    Attributes
    ----------
    node
        Uuid of the node.
    state
        ``current``: each commit waits for it. ``filling``: it gets a whole copy.
        ``behind``: it gave no answer, or a wrong one, and nobody waits for it.
    commits
        How many it lacks, as far as the master knows; None if it may lack all.
    why
        Why it is behind.
    """

    node: str
    state: str
    commits: int | None = None
    why: str = ""


class GetCopies(AtMaster[list[CopyStatus]], frozen=True, tag="state.copies"):
    """Return what the master knows of its copies."""

    reads = True


class GetStore(AtMaster[list[StoreTrouble]], frozen=True, tag="state.store"):
    """Return what somebody should do about the place where the state is kept."""

    reads = True


class GetWatcher(AtMaster[float | None], frozen=True, tag="watcher.look"):
    """Return when the watcher last looked, in seconds; None where none is expected.

    That this master began to lead counts as a look: before, it could not.
    """

    reads = True
