# SPDX-License-Identifier: BSD-2-Clause
"""Every error an operator can meet, and what they can do about it.

* MoorageError
  + Refused        - the request breaks a rule; nothing was changed
    - BadInput     - the words of the request are off
    - NotFound     - no object goes by that name or uuid
    - Exists       - the name is taken
    - Ambiguous    - the name fits several objects
    - WrongState   - the object is not in a state that allows the request
    - NotSupported - the storage template or provider lacks the capability
    - Conflict     - the state moved under the request; look again, then retry
    - Stale        - the step carries an older epoch or term than the node has seen
    - NoCapacity   - no placement keeps every promise
    - AllocatorFailed - an allocator said nothing that can be used
    - HookFailed   - an administrator's script said no before anything was done
    - NoMaster     - nobody listens where a master, or the door before it, was sought
  + Failed         - something ran and broke; the job says what was undone
    - CommandFailed - a program on a node exited with an error
    - Unreachable  - a node gave no answer

The first question of whoever catches one is answered by its trunk: `Refused` says
that nothing was changed, `Failed` that something ran.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self


class MoorageError(Exception):
    """One sentence with the facts in it, a stable code, and a command to type.

    Parameters
    ----------
    message
        One sentence, with the numbers and names that matter.
    hint
        What to type next; empty when there is nothing to type.
    facts
        The same facts for programs, as JSON values.
    """

    code: ClassVar[str] = "error"
    """Stable, kebab-case; what programs match on."""
    ganeti: ClassVar[str] = "internal_error"
    """Ganeti's error code, for scripts that parse it."""

    def __init__(self, message: str, *, hint: str = "", **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts

    def to_json(self) -> dict[str, Any]:
        """Return the error as JSON values; :func:`from_json` is the inverse."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "facts": self.facts,
        }

    def with_hint(self, hint: str) -> Self:
        """Return this error with another hint."""
        self.hint = hint
        return self


class Refused(MoorageError):
    """The request breaks a rule; nothing was changed."""

    code = "refused"
    ganeti = "wrong_state"


class BadInput(Refused):
    """The words of the request are off."""

    code = "bad-input"
    ganeti = "wrong_input"


class NotFound(Refused):
    """No object goes by that name or uuid."""

    code = "not-found"
    ganeti = "unknown_entity"


class Exists(Refused):
    """The name is taken."""

    code = "exists"
    ganeti = "already_exists"


class Ambiguous(Refused):
    """The name fits several objects."""

    code = "ambiguous"
    ganeti = "resource_not_unique"


class WrongState(Refused):
    """The object is not in a state that allows the request."""

    code = "wrong-state"
    ganeti = "wrong_state"


class Forbidden(Refused):
    """Whoever asks may not ask for it."""

    code = "forbidden"
    ganeti = "wrong_input"


class NotSupported(Refused):
    """The storage template or provider lacks the capability."""

    code = "not-supported"
    ganeti = "wrong_input"


class Conflict(Refused):
    """The state moved under the request; look again, then retry."""

    code = "conflict"
    ganeti = "temp_insufficient_resources"


class Stale(Refused):
    """The step carries an older epoch or term than the node has seen."""

    code = "stale"
    ganeti = "wrong_state"


class NoCapacity(Refused):
    """No placement keeps every promise (space, memory, N+1)."""

    code = "no-capacity"
    ganeti = "insufficient_resources"


class AllocatorFailed(Refused):
    """A program that chooses nodes said nothing that can be used; nothing was done."""

    code = "allocator-failed"
    ganeti = "environment_error"


class HookFailed(Refused):
    """An administrator's script said no before anything was done."""

    code = "hook-failed"
    ganeti = "environment_error"


class NoMaster(Refused):
    """Nobody listens where a master, or the door before it, was sought."""

    code = "no-master"
    ganeti = "environment_error"


class NotMaster(Refused):
    """The master that was asked waits: another one leads. Ask on its node."""

    code = "not-master"
    ganeti = "wrong_input"


class Failed(MoorageError):
    """Something ran and broke; the job says what was undone."""

    code = "failed"
    ganeti = "environment_error"


class CommandFailed(Failed):
    """A program on a node exited with an error."""

    code = "command-failed"


class Unreachable(Failed):
    """A node gave no answer.

    Its fact ``silent`` is False where somebody was there all the same: one with a
    certificate that nobody trusts, or who broke off.
    """

    code = "unreachable"


def answered_unfit(error: MoorageError) -> bool:
    """Say whether a node is there, and answers as no agent does."""
    return isinstance(error, Unreachable) and bool(error.facts.get("unfit"))


def may_be_off(error: MoorageError) -> bool:
    """Whether what came instead of a node's answer may mean that it has no power.

    An error that the node sent itself does not, whatever it says.
    """
    return isinstance(error, Unreachable) and error.facts.get("silent") is not False


def cause_of(error: MoorageError) -> str:
    """Return why a node gave no proper answer, for a sentence that names the node."""
    return str(error.facts.get("cause", error.message))


def _tree(trunk: type[MoorageError]) -> Mapping[str, type[MoorageError]]:
    """Return every class of the tree by its code."""
    found = {trunk.code: trunk}
    for branch in trunk.__subclasses__():
        found |= _tree(branch)
    return found


BY_CODE = _tree(MoorageError)


def from_json(data: Mapping[str, Any]) -> MoorageError:
    """Return the error that `data` describes; unknown codes become `Failed`."""
    kind = BY_CODE.get(str(data.get("code")), Failed)
    error = kind(str(data.get("message", "")), hint=str(data.get("hint", "")))
    error.facts = dict(data.get("facts") or {})
    return error


def sentence(error: Exception) -> MoorageError:
    """Return an error of ours; a defect of ours becomes one, and is logged."""
    if isinstance(error, MoorageError):
        return error
    import logging  # noqa: PLC0415 - start-up time

    logging.getLogger(__name__).error("something broke", exc_info=error)
    return Failed(f"internal error: {type(error).__name__}: {error}")
