# SPDX-License-Identifier: BSD-2-Clause
"""Whatever is typed is done or refused in a sentence, soon; a refusal changes nothing.

``pytest tests/cli/test_fuzz.py --fuzz-seed 7 --fuzz-lines 20000`` tries others.
"""

import asyncio
import random
import re
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import pytest

from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.cli.command import Command, Option, programs
from moorage.cli.main import run
from moorage.cli.terminal import Terminal
from moorage.testing.cluster import ClusterBuilder, SimCluster

LEFT_OUT = {
    ("gnt-cluster", "destroy"),  # it ends the master that all others are typed at
    ("gnt-instance", "console"),  # it takes over the terminal
    ("moorage", "agent"),  # these run until they are ended
    ("moorage", "events"),
    ("moorage", "master"),
    ("moorage", "tour"),
    ("moorage", "up"),
}
NAMES = ("web1", "web2", "root", "data1", "node1", "node3", "default", "1", "nosuch")
"""Most of them are in the cluster."""
WORDS = (
    "",
    " ",
    "-",
    "--",
    "-1",
    "0",
    "99999999999999999999",
    "9" * 5000,
    "1e308",
    "nan",
    "-0.0",
    "1-99999999",
    "5-1",
    "\u0663",
    "\u00b2",
    "a" * 3000,
    "a,b,,c",
    "a=b=c",
    "=x",
    "a:b:c",
    ":",
    "a\0b",
    "a\nb",
    "\x1b[2J",
    "\ud800",
    "\udcff",
    "\u202eweb1",
    "\U0001f6a2",
    "'",
    '"',
    "\\",
    "$(id)",
    "../../etc/passwd",
    "/etc/passwd",
    "/proc/self/mem",
    "%s%n",
    "{}",
    "null",
    "true",
    "name == 'a",
    "name =~ m/(/",
    "name =~ m/^(a+)+$/",
    "(" * 200,
    "not " * 200 + "drained",
    "a..b",
    "10.0.0.1",
    "Web1",
    "*",
    "default",
    "none",
)
SHAPES = (
    "{}",
    "{}",
    "0:{}",
    "0:size={}",
    "0:add,size={}",
    "attach,name={}",
    "kvm:{}=1",
    "kvm:kvm_extra={}",
    "ext:{}",
    "ext:access={}",
    "memory={}",
    "vcpus={}",
    "key={}",
    "0:mac={}",
    "0:link={},mode=bridged",
    "+{}",
    "{},{}",
)


SECONDS = 60.0
"""For one line, on a machine that is slow and busy: a hang, and no measure of speed."""
LONGEST = 20_000
"""Characters of the longest talk."""
STATUSES = {0, 1, 2, 14}
DEFECT = re.compile(
    r"Traceback|unhandled error|internal error|msgspec|Expected `|Error\(|\bat 0x"
    r"|object has no attribute",
)
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\x9b\ud800-\udfff]")


# -- what is typed --------------------------------------------------------------------


def lines(seed: int, count: int, files: list[Path]) -> Iterator[tuple[str, list[str]]]:
    """Yield programs and their words.

    Parameters
    ----------
    files
        Paths where a file is asked for: directories, broken files, none.
    """
    chance = random.Random(seed)  # noqa: S311 - the same seed, the same lines
    known = [
        (program, command)
        for program in programs()
        for command in program.commands
        if (program.name, command.name) not in LEFT_OUT
    ]
    every = iter(known)  # each command at least once
    for _ in range(count):
        program, command = next(every, None) or chance.choice(known)
        words = _words(chance, command, files)
        yield program.name, [*command.name.split(), *words]


def _words(chance: random.Random, command: Command, files: list[Path]) -> Iterator[str]:
    options = list(command.options)
    chance.shuffle(options)
    for option in options[: chance.randrange(4)]:
        yield from _option(chance, option, files)
    for operand in command.operands:
        for _ in range(max(operand.least, chance.choice((0, 1, 1, 2)))):
            yield _value(chance, files)
    if chance.random() < 0.05:
        yield chance.choice(("--nosuch", "--", "-Z", "--dry", "--no-"))


def _option(chance: random.Random, option: Option, files: list[Path]) -> Iterator[str]:
    yield chance.choice(option.flags)
    if option.metavar:
        fitting = option.choices and chance.random() < 0.5
        yield chance.choice(option.choices) if fitting else _value(chance, files)


def _value(chance: random.Random, files: list[Path]) -> str:
    kind = chance.random()
    if kind < 0.4:
        return chance.choice(NAMES)
    if kind < 0.5:
        return str(chance.choice(files))
    if kind < 0.75:
        return chance.choice(WORDS)
    return chance.choice(SHAPES).replace("{}", chance.choice(WORDS))


# -- who is asked ---------------------------------------------------------------------


class Master(NamedTuple):
    environ: dict[str, str]
    state: Callable[[], object]


async def _serve(root: Path, box: list, ready: threading.Event, done) -> None:
    builder = (
        ClusterBuilder()
        .disk("root")
        .disk("data1")
        .instance("web1", "node1", ("root",))
        .instance("web2", "node2")
    )
    cluster = await SimCluster.start(root / "nodes", builder)
    server = LuxiServer(
        Sources(cluster.config_store, cluster.nodes, cluster.engine), root / "luxi.sock"
    )
    await server.start()
    box.append(cluster)
    ready.set()
    await asyncio.to_thread(done.wait)
    await server.stop()
    await cluster.stop()


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    """Start a master on simulated nodes."""
    ready, done, box = threading.Event(), threading.Event(), []
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "nodes").mkdir()
        thread = threading.Thread(
            target=lambda: asyncio.run(_serve(root, box, ready, done))
        )
        thread.start()
        assert ready.wait(SECONDS)
        environ = {
            "MOORAGE_SOCKET": f"{root}/luxi.sock",
            "MOORAGE_DIR": f"{root}/no-master",
            "TERM": "dumb",
        }
        monkeypatch.setenv("MOORAGE_DIR", environ["MOORAGE_DIR"])
        monkeypatch.chdir(root)
        (cluster,) = box

        def state() -> object:
            end = time.monotonic() + SECONDS
            while cluster.engine._running and time.monotonic() < end:
                time.sleep(0.001)  # what was only submitted is under way
            return dict(cluster.config.objects), dict(cluster.nodes.san.volumes)

        yield Master(environ, state)
        done.set()
        thread.join(SECONDS)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Return paths where no sane file is."""
    broken = {
        "empty": b"",
        "text": b"not json",
        "binary": bytes(range(256)),
        "list": b"[1, {}, null]",
        "deep": b"[" * 100_000,
        "opcodes": b'[{"OP_ID": "OP_NOSUCH"}, {"OP_ID": 5}]',
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "scratch.json").write_bytes(b'{"root": 5}')
    (tmp_path / "loop").symlink_to("loop")
    found = [*(tmp_path / name for name in broken), scratch, tmp_path / "loop"]
    return [
        *found,
        tmp_path,
        tmp_path / "no" / "such",
        Path("/proc/x"),
        Path("/dev/null"),
    ]


def typed(master: Master, program: str, words: list[str]) -> tuple[int, str, str]:
    """Type a line as a shell would, on streams that encode as a terminal's do."""
    module = import_module(f"moorage.cli.{program.replace('-', '_')}")
    out, err = (
        TextIOWrapper(BytesIO(), "utf-8", errors=errors, write_through=True)
        for errors in ("surrogateescape", "backslashreplace")
    )
    terminal = Terminal(out, err, StringIO(), master.environ)
    status = run(module.PROGRAM, words, terminal)
    out.flush()
    texts = (s.buffer.getvalue().decode("utf-8", "surrogateescape") for s in (out, err))
    return status, *texts


def judge(master: Master, program: str, words: list[str]) -> str:
    """Return what is wrong with the answer to a line; empty when nothing is."""
    before, began = master.state(), time.monotonic()
    status, out, err = typed(master, program, words)
    took = time.monotonic() - began
    refused = "nothing was changed" in err and "for job" not in out
    # The status is the answer of these.
    silent = (program, words[0]) in {
        ("gnt-job", "wait"),
        ("gnt-cluster", "search-tags"),
    }
    claims = {
        f"status {status}": status in STATUSES,
        f"it took {took:.0f} s": took < SECONDS,
        "a defect is shown": not DEFECT.search(err),
        "it failed without a word": not status or bool(out or err) or silent,
        "a book instead of a sentence": len(err) < LONGEST,
        "control characters reach the terminal": not CONTROL.search(out + err),
        "it was refused, and something changed": not refused
        or before == master.state(),
    }
    wrong = "; ".join(claim for claim, holds in claims.items() if not holds)
    return wrong and f"{wrong}: {err[-200:]!a}"


def shown(program: str, words: list[str]) -> str:
    return f"{program} {' '.join(ascii(word)[:80] for word in words)}"


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.timeout(3600)
def test_no_line_breaks_anything(
    master: Master, files: list[Path], request: pytest.FixtureRequest
) -> None:
    seed = request.config.getoption("--fuzz-seed")
    count = request.config.getoption("--fuzz-lines")
    before, wrong = memory(), []
    for program, words in lines(seed, count, files):
        try:
            problem = judge(master, program, words)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            problem = f"{type(error).__name__} got out: {error}"
        if problem:
            wrong.append(f"{shown(program, words)}: {problem}")
    assert not wrong, f"{len(wrong)} of {count} lines, seed {seed}:\n" + "\n".join(
        wrong[:60]
    )
    assert memory() - before < 512 * 1024, "KiB"
