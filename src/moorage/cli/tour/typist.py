# SPDX-License-Identifier: BSD-2-Clause
"""Types commands as a person would, and shows what they print."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from .claims import claim

_MARGIN = "     "
_SECONDS = 900


class Typist:
    """Types commands in the environment of a cluster.

    Parameters
    ----------
    environ
        The cluster's variables.
    out
        Where commands and their answers are shown.
    """

    def __init__(self, environ: Mapping[str, str], out: TextIO = sys.stdout) -> None:
        self._environ = {**os.environ, **environ, "NO_COLOR": "1"}
        self._out = out

    def type(self, line: str) -> str:
        """Type a command that must succeed; return what it prints."""
        done = self._run(line, shown=True)
        claim(done.returncode == 0, f"'{line}' failed: {done.stderr.strip()}")
        return done.stdout

    def enter(self, line: str) -> str:
        """Type a line that needs a shell and must succeed; return what it prints."""
        done = self._run(line, shown=True, words=["sh", "-c", line])
        claim(done.returncode == 0, f"'{line}' failed: {done.stderr.strip()}")
        return done.stdout

    def refused(self, line: str) -> str:
        """Type a command that must be refused; return what it says."""
        done = self._run(line, shown=True)
        claim(done.returncode == 1, f"'{line}' was not refused")
        return done.stderr

    def ask(self, line: str) -> Any:  # noqa: ANN401
        """Type a command with ``--json``, without showing it; return the values."""
        done = self._run(f"{line} --json", shown=False)
        claim(done.returncode == 0, f"'{line}' failed: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def look(self, line: str) -> str:
        """Type a command without showing it; return what it prints."""
        done = self._run(line, shown=False)
        claim(done.returncode == 0, f"'{line}' failed: {done.stderr.strip()}")
        return done.stdout

    def say(self, text: str) -> None:
        """Show a line that nobody typed."""
        self._show(text)

    def _run(
        self, line: str, *, shown: bool, words: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        if shown:
            self._show(f"$ {line}")
        done = subprocess.run(
            words or shlex.split(line),
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if shown:
            for text in (done.stdout + done.stderr).splitlines():
                self._show(f"  {text}" if text else "")
        return done

    def _show(self, text: str) -> None:
        self._out.write(f"{_MARGIN}{text}".rstrip() + "\n")
        self._out.flush()
