# SPDX-License-Identifier: BSD-2-Clause
"""A scripted master on a real Unix socket, and commands that are typed at it."""

import os
import shlex
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moorage.api.luxi import Splitter
from moorage.api.luxi_messages import (
    decode_request,
    encode_error,
    encode_result,
    error_to_wire,
)
from moorage.cli.main import run
from moorage.cli.terminal import Terminal
from moorage.errors import BadInput, MoorageError
from moorage.ops import OPERATIONS, parse
from moorage.testing.served import Served

SCREENS = Path(__file__).parent / "screens"


class Master:
    """Answers requests from a script; jobs succeed with the result that is set.

    Attributes
    ----------
    answers
        By method: a value, an error, or a function of the arguments.
    result
        Of each job's operation; an error fails the job.
    results
        By opcode, for those that have another result.
    logs
        Entries that a job tells while it runs.
    calls
        What was asked, in order.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.answers: dict[str, Any] = {}
        self.result: Any = None
        self.results: dict[str, Any] = {}
        self.logs: list[list[Any]] = []
        self.calls: list[tuple[str, list[Any]]] = []
        self._jobs = 0
        self._usual: dict[str, Callable[..., Any]] = {
            "SubmitJobOnce": self._submit,
            "WaitForJobChange": self._wait,
            "QueryJobs": self._outcome,
        }
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def ops(self) -> list[dict[str, Any]]:
        """Opcodes that were submitted, without their reason trail."""
        jobs = [args[1] for method, args in self.calls if method == "SubmitJobOnce"]
        found = [op for ops in jobs for op in ops]
        return [{k: v for k, v in op.items() if k != "reason"} for op in found]

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=5)

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(link,), daemon=True).start()

    def _talk(self, link: socket.socket) -> None:
        splitter = Splitter()
        with link:
            while data := link.recv(65536):
                for message in splitter.feed(data):
                    if not self._answer(link, *decode_request(message)):
                        return

    def _answer(self, link: socket.socket, method: str, args: list[Any]) -> bool:
        self.calls.append((method, args))
        try:
            link.sendall(encode_result(self._result(method, args)))
        except MoorageError as error:
            link.sendall(encode_error(error))
        except ConnectionError:
            return False  # the script hangs up
        return True

    def _result(self, method: str, args: list[Any]) -> Any:
        answer = self.answers.get(method, self._usual.get(method))
        if answer is None:
            raise BadInput(f"the script knows no {method}")
        if isinstance(answer, MoorageError):
            raise answer
        return answer(*args) if callable(answer) else answer

    # What a job does, unless the script says otherwise.

    def _submit(self, _key: str, ops: list[Any]) -> int:
        for op in ops:
            if op["OP_ID"] in OPERATIONS:
                parse(op)  # what the command line sends is what the master takes
        self._jobs += 1
        return self._jobs

    def _status(self) -> str:
        return "error" if isinstance(self.result, MoorageError) else "success"

    def _wait(self, _job: int, fields: list[str], *_: Any) -> Any:
        values = {"status": self._status(), "progress": None}
        return [[values[field] for field in fields], self.logs]

    def _outcome(self, jobs: list[int], fields: list[str]) -> Any:
        failed = isinstance(self.result, MoorageError)
        last = self.ops[-1]["OP_ID"] if self.ops else ""
        told = self.results.get(last, self.result)
        result = error_to_wire(self.result) if failed else told
        row = {"status": self._status(), "opstatus": [self._status()]}
        row |= {"opresult": [result], "summary": [last]}
        return [[row[field] for field in fields] for _ in jobs]


class Screen(NamedTuple):
    status: int
    out: str
    err: str


class Tty(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def master() -> Iterator[Master]:
    with tempfile.TemporaryDirectory() as directory:
        found = Master(f"{directory}/luxi.sock")
        yield found
        found.close()


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


Typed = Callable[..., Screen]


@pytest.fixture
def typed(master: Master) -> Typed:
    """Type a command line; return exit status and screens."""

    def typed_(line: str, answer: str | None = None, **environ: str) -> Screen:
        name, *argv = shlex.split(line)
        program = import_module(f"moorage.cli.{name.replace('-', '_')}").PROGRAM
        kind = StringIO if answer is None else Tty
        terminal = Terminal(
            StringIO(),
            kind(),
            kind(answer or ""),
            {"MOORAGE_SOCKET": master.path, "TERM": "dumb", **environ},
        )
        status = run(program, argv, terminal)
        return Screen(status, terminal.out.getvalue(), terminal.err.getvalue())

    return typed_


@pytest.fixture
def same_screen() -> Callable[[str, str], None]:
    """Compare a screen with the one on file; SCREENS=write makes it anew."""

    def same(name: str, text: str) -> None:
        path = SCREENS / f"{name}.txt"
        if os.environ.get("SCREENS") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return same


@pytest.fixture
def types(typed: Callable[..., Any], sim: Served) -> Callable[..., str]:
    """Type a line at the file's cluster, and return what it prints.

    With a status of None, how it ends does not matter.
    """

    def types_(line: str, status: int | None = 0) -> str:
        screen = typed(line, **sim.environ)
        assert status in (screen.status, None), screen.err
        return screen.out + (screen.err if status else "")

    return types_
