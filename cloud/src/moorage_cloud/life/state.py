# SPDX-License-Identifier: BSD-2-Clause
"""A volume's life, as far as its transitions ask; and what happens to it."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from .status import Act, Status, Verb

LETS_GO: Mapping[Act, Act] = {
    Act.TAKE: Act.LEAVE,
    Act.BORROW: Act.RETURN,
    Act.COPY: Act.LEAVE,
}
"""What takes back that a cluster has a disk; no data goes with it."""


class Task(Struct, frozen=True, kw_only=True):
    """A verb that is under way.

    Attributes
    ----------
    acts
        What clusters are asked for, in order.
    step
        Which of them is asked for now; 0 is the first.
    back
        Whether a step failed, and what was taken on is let go of again: `step` says
        what for.
    before
        The status to go back to.
    server
        With whose instance a cluster does it; None for a disk without an instance.
    size
        GiB that the volume is to have when it is done.
    why
        What failed, in one sentence; empty while nothing did.
    """

    verb: Verb
    acts: tuple[Act, ...]
    step: int = 0
    back: bool = False
    before: Status
    server: int | None
    size: int
    why: str = ""

    @property
    def act(self) -> Act:
        """What the cluster is asked for now."""
        act = self.acts[self.step]
        return LETS_GO[act] if self.back else act


class Life(Struct, frozen=True, kw_only=True):
    """Where a volume stands.

    Attributes
    ----------
    size
        GiB.
    initialized
        Whether its data was made: the next cluster is to adopt, and not to make it.
    server
        The server that has it, gets it or loses it; never one that only lends its
        cluster for a moment.
    generation
        Rises by one with each verb: what belongs to an older one comes too late.
    task
        The verb under way; None while it rests.
    """

    status: Status
    size: int
    initialized: bool = False
    server: int | None = None
    generation: int = 0
    task: Task | None = None

    @property
    def stored(self) -> bool:
        """Whether some storage may hold data of it, or will in a moment."""
        return self.initialized or self.server is not None


# --- what happens ---------------------------------------------------------------------


class Attach(Struct, frozen=True):
    """Somebody wants it on a server."""

    server: int


class Detach(Struct, frozen=True):
    """Somebody wants it off its server."""


class Extend(Struct, frozen=True):
    """Somebody wants it larger.

    Attributes
    ----------
    size
        GiB, more than it has.
    by
        A server that lends its cluster, if the volume is detached and no cluster
        could do it otherwise.
    """

    size: int
    by: int | None = None


class Delete(Struct, frozen=True):
    """Somebody wants it and its data gone; `by` as with :class:`Extend`."""

    by: int | None = None


class Check(Struct, frozen=True):
    """Somebody wants to know if its data is there; `by` as with :class:`Extend`."""

    by: int | None = None


class NoData(Struct, frozen=True):
    """An administrator knows that no data of it is anywhere."""


class Copy(Struct, frozen=True):
    """It, a snapshot or a volume, is to be a copy of something.

    Attributes
    ----------
    by
        The server that has the original; else as with :class:`Extend`.
    borrows
        Whether no server has the original, and a cluster has it for the copy only.
    grows
        Whether it is to be larger than the original.
    """

    by: int | None
    borrows: bool = False
    grows: bool = False


class CutOff(Struct, frozen=True):
    """An administrator knows that the cluster is off that has it, or works on it.

    Attributes
    ----------
    why
        What is told of a verb that was under way.
    """

    why: str


class Found(Struct, frozen=True):
    """A comparison with the clusters has found where it is; no verb is under way.

    Attributes
    ----------
    server
        The server that has it; None for none.
    """

    server: int | None


class Measured(Struct, frozen=True):
    """A comparison with the clusters has found how large it is, GiB, rounded up."""

    size: int


class Perished(Struct, frozen=True):
    """The server that starts from it is gone, and its data with it."""


class Done(Struct, frozen=True):
    """The cluster has done what it was asked for."""

    generation: int
    step: int
    back: bool


class Failed(Struct, frozen=True):
    """The cluster refused, or has not done it, and has undone what it began.

    Attributes
    ----------
    off
        Whether it could not undo that the volume left its server.
    """

    generation: int
    step: int
    back: bool
    why: str
    off: bool = False


User = Attach | Detach | Extend | Delete | Check | NoData | Copy | CutOff
World = Done | Failed
Event = User | World | Found | Measured | Perished

# --- what is to be done ---------------------------------------------------------------


class Ask(Struct, frozen=True):
    """Ask a cluster for the act of the task."""


class Charge(Struct, frozen=True):
    """Take from the project's quota, or give back where it is below 0."""

    size: int


class Result(StrEnum):
    """How a verb ended."""

    DONE = "done"
    FAILED = "failed"


class End(Struct, frozen=True):
    """The verb is over."""

    result: Result
    why: str = ""


Instruction = Ask | Charge | End


class NotNow(Exception):
    """The volume is not in a state for this; the sentence says which it needs."""
