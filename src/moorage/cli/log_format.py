# SPDX-License-Identifier: BSD-2-Clause
"""How a daemon writes its log: lines for people, or an object of JSON each."""

import os

from .command import Call, Option
from .daemons_side import daemons
from .terminal import Terminal

LOG_FORMAT = Option(
    ("--log-format",), "text or json (what MOORAGE_LOG_FORMAT says, or text)", "FORMAT"
)


def choose(call: Call) -> None:
    """Let this process, and those that it starts, write the log that was asked for.

    Raises
    ------
    BadInput
        If there is no such format.
    """
    log = daemons("log_limit")
    given = call.option("log_format")
    as_json = log.as_json(given)
    if given:
        os.environ[log.FORMAT] = given
    if as_json:
        call.terminal = JsonTerminal.over(call.terminal)


class JsonTerminal(Terminal):
    """Writes an object of JSON where others write a line."""

    @classmethod
    def over(cls, other: Terminal) -> "JsonTerminal":
        """Return one with the streams of another."""
        return cls(other.out, other.err, other.inp, other.environ)

    def print(self, line: str = "") -> None:
        """Write a line of data."""
        self.out.write(self._made(line))

    def talk(self, line: str, *, red: bool = False) -> None:
        """Write a line of talk."""
        self.out.flush()
        self.err.write(self._made(line, "ERROR" if red else "INFO"))
        self.err.flush()

    @staticmethod
    def _made(line: str, level: str = "INFO") -> str:
        log = daemons("log_limit")
        return f"{log.json_line(level, 'moorage.watcher', line)}\n"
