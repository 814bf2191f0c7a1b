# SPDX-License-Identifier: BSD-2-Clause
"""Guests that have a process and do not run: why, and what to do about it.

The causes are QEMU's words; ``no-answer`` is ours.
"""

from typing import NamedTuple

NO_ANSWER = "no-answer"
"""QEMU's monitor said nothing."""
WAKEABLE = frozenset({"io-error", "paused", "postmigrate", "prelaunch"})
"""Causes after which a guest can go on where it stood."""


class Standstill(NamedTuple):
    """Why a guest stands still, and a command that helps (``{}`` is its name)."""

    why: str
    remedy: str


_KNOWN = {
    "guest-panicked": Standstill("its system panicked", "gnt-instance reboot {}"),
    "internal-error": Standstill(
        "the processor could not go on with it",
        "gnt-instance modify -H accel=tcg {} && gnt-instance reboot -t full {}",
    ),
    "io-error": Standstill(
        "its storage failed, most often for want of room",
        "make room, then: gnt-instance startup {}",
    ),
    "paused": Standstill("it was paused", "gnt-instance startup {}"),
    "postmigrate": Standstill(
        "a migration of it did not succeed", "gnt-instance startup {}"
    ),
    "prelaunch": Standstill("it was started paused", "gnt-instance startup {}"),
    "shutdown": Standstill(
        "it powered off and left its process", "gnt-instance shutdown {}"
    ),
    "suspended": Standstill("it put itself to sleep", "gnt-instance reboot {}"),
    "watchdog": Standstill("its watchdog ran out", "gnt-instance reboot {}"),
    NO_ANSWER: Standstill(
        "its QEMU gives no answer", "gnt-instance shutdown --timeout=0 {}"
    ),
}


def standstill(cause: str) -> Standstill:
    """Return what a cause means.

    >>> standstill("paused").why
    'it was paused'
    """
    other = Standstill("QEMU says no more", "gnt-instance reboot {}")
    return _KNOWN.get(cause, other)


def told(cause: str) -> str:
    """Return a cause with its meaning.

    >>> told("watchdog")
    'watchdog: its watchdog ran out'
    """
    return f"{cause or 'paused'}: {standstill(cause or 'paused').why}"


def remedy(cause: str, name: str) -> str:
    """Return what to type for the instance `name`."""
    return standstill(cause or "paused").remedy.replace("{}", name)
