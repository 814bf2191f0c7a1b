# SPDX-License-Identifier: BSD-2-Clause
"""Errors as a person reads them, in the words that Ganeti's scripts look for."""

from collections.abc import Iterator, Mapping

from moorage.errors import HookFailed, MoorageError, NoMaster, Refused

from .declaration import Usage
from .terminal import Terminal

_REFUSED = "Failure: prerequisites not met for this operation:"
_HOOK = "Failure: hooks execution failed:"
_FAILED = "Failure: command execution error:"


def show(error: MoorageError, terminal: Terminal) -> None:
    """Write an error: what happened, what to type next, whether anything changed."""
    first, *others = lines(error)
    terminal.talk(first, red=True)
    for line in others:
        terminal.talk(line)


def defect(error: Exception, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the lines that say that this is our fault.

    The trace is for those who ask for it: then the error is raised.
    """
    if environ.get("MOORAGE_DEBUG"):
        raise error
    return (
        "Failure: unhandled error in the command line:",
        f"{type(error).__name__}: {error}",
        "hint: MOORAGE_DEBUG=1 shows where; please report it",
    )


def lines(error: MoorageError) -> Iterator[str]:
    """Yield an error's lines."""
    if isinstance(error, Usage | NoMaster):
        yield f"error: {error.message}"
    elif isinstance(error, HookFailed):
        yield from (_HOOK, error.message)
    elif isinstance(error, Refused):
        yield from (_REFUSED, f"error type: {error.ganeti}, error details:")
        yield error.message
    else:
        yield from (_FAILED, error.message)
    if error.hint:
        yield f"hint: {error.hint}"
    yield f"code: {error.code}{_state(error)}"


def _state(error: MoorageError) -> str:
    job = error.facts.get("job")
    if isinstance(error, Refused):
        if error.facts.get("done_before"):
            return f" · gnt-job info {job} says what was done before"
        return " · nothing was changed"
    return f" · gnt-job info {job} says what was undone" if job else ""
