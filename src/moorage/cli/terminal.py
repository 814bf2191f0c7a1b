# SPDX-License-Identifier: BSD-2-Clause
"""The person's side: data goes out, talk goes to the error stream, answers come in."""

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper
from typing import Self, TextIO, cast

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Return text whose control characters are written out, lines and tabs kept.

    What a script, a node or a name says must not move a person's cursor, and half a
    character has no bytes.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def _nobody(mode: str) -> TextIO:
    """Return what stands for a stream that is closed, as under some daemons."""
    return cast("TextIO", open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123


class Terminal:
    """Three streams and the environment of one command.

    Parameters
    ----------
    out
        Data, for programs and people.
    err
        Talk: what is being done, what went wrong.
    inp
        Where a person answers; nobody is asked when it is not a terminal.
    """

    def __init__(
        self, out: TextIO, err: TextIO, inp: TextIO, environ: Mapping[str, str]
    ) -> None:
        self.out = out
        self.err = err
        self.inp = inp
        self.environ = environ

    @classmethod
    def standard(cls) -> Self:
        """Return the terminal of this process; what it cannot write is escaped."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        out, err = sys.stdout or _nobody("w"), sys.stderr or _nobody("w")
        return cls(out, err, sys.stdin or _nobody("r"), os.environ)

    @property
    def answers(self) -> bool:
        """Whether somebody is there to be asked."""
        return self.inp.isatty() and self.err.isatty()

    @property
    def lively(self) -> bool:
        """Whether talk may be redrawn, as a progress bar is."""
        return self.err.isatty() and self.environ.get("TERM") != "dumb"

    def print(self, line: str = "") -> None:
        """Write a line of data."""
        self.out.write(visible(line) + "\n")

    def talk(self, line: str, *, red: bool = False) -> None:
        """Write a line of talk; what was printed before stands before it."""
        text = visible(line)
        with suppress(OSError):  # it is told at the end that this could not be written
            self.out.flush()
        self.err.write((self._red(text) if red else text) + "\n")
        self.err.flush()

    def _red(self, text: str) -> str:
        """Return text that a person's eye falls on."""
        plain = not self.lively or "NO_COLOR" in self.environ
        return text if plain else f"\x1b[1;31m{text}\x1b[0m"

    def confirms(self, question: str) -> bool:
        """Ask a question that yes or no answers."""
        return self.reads(f"{question} [y/N]: ").lower() in ("y", "yes")

    def reads(self, question: str) -> str:
        """Ask a question; return the line that answers it."""
        self.err.write(visible(question))
        self.err.flush()
        return self.inp.readline().strip()
