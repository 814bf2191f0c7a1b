# SPDX-License-Identifier: BSD-2-Clause
"""The person's side: data goes out, talk goes to the error stream, answers come in."""

import os
import sys
from collections.abc import Mapping
from typing import Self, TextIO


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
        """Return the terminal of this process."""
        return cls(sys.stdout, sys.stderr, sys.stdin, os.environ)

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
        self.out.write(line + "\n")

    def talk(self, line: str) -> None:
        """Write a line of talk; what was printed before stands before it."""
        self.out.flush()
        self.err.write(line + "\n")
        self.err.flush()

    def red(self, text: str) -> str:
        """Return text that a person's eye falls on."""
        plain = not self.lively or "NO_COLOR" in self.environ
        return text if plain else f"\x1b[1;31m{text}\x1b[0m"

    def confirms(self, question: str) -> bool:
        """Ask a question that yes or no answers."""
        self.err.write(f"{question} [y/N]: ")
        self.err.flush()
        return self.inp.readline().strip().lower() in ("y", "yes")
