# SPDX-License-Identifier: BSD-2-Clause

"""Type what a page of the docs shows, and compare what comes out.

A fenced block ``console`` holds lines to type (after ``$``, going on after ``>``) and
what they print. A line that ends in ``# refused`` must fail, every other one must not.
A line ``...`` stands for any lines. A block whose first line says ``file=NAME`` is
written to that file. ``<!-- real -->`` marks a page that needs root and QEMU.

``python scripts/docs/console.py --write PAGE...`` puts the real outputs into pages.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOWN = "/tmp/cluster"  # noqa: S108 - a word in the pages, not a directory that is used
"""The directory that pages name; each run has one of its own instead."""
REAL = "<!-- real -->"
REFUSED = "# refused"

_MARK = "--docs-console--"
_FENCE = re.compile(r"```(\w+)(?: file=(\S+))?$")
_VARIES = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
    (re.compile(r"\b\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\b"), "TIME"),
    (re.compile(r"\b127(\.\d+){3}\b"), "ADDRESS"),
    (re.compile(r"\b\d+\.\d+ seconds"), "SPAN"),
    (re.compile(r"\bprocess \d+|\b\d+ ms\b"), "NUMBER"),
    # The master has jobs of its own, when it finds something to do.
    (re.compile(r"((?<=gnt-job info )|\bjob )\d+|^ *\d+(?= success | error )"), "JOB"),
    # Of a node whose power is cut, a line to it breaks, or it takes no new one.
    (re.compile(r"\d+ commits? \(Connection (refused|reset by peer)\)"), "COMMITS"),
    (re.compile(r"\bMOORAGE_TICKET=\S+"), "TICKET"),
    (re.compile(re.escape(str(ROOT))), "CHECKOUT"),
    (re.compile(r"[ \t]+"), " "),
)


class Wrong(Exception):
    """A page does not tell the truth."""


@dataclass
class Step:
    """One thing to do.

    Attributes
    ----------
    text
        What bash is to read.
    refused
        Whether it must fail.
    shown
        What the page says that it prints.
    line
        Number of its line in the page, from 0.
    ends
        Number of the line behind what it prints.
    """

    text: str
    line: int
    refused: bool = False
    shown: list[str] = field(default_factory=list)
    ends: int = 0


def steps_of(page: str) -> list[Step]:
    """Return what a page says is to be done, in order."""
    found: list[Step] = []
    kind, name, body, begin = "", "", list[str](), 0
    for number, line in enumerate(page.splitlines()):
        fence = _FENCE.match(line)
        if not kind and fence:
            kind, name, body, begin = fence[1], fence[2] or "", [], number + 1
        elif kind and line == "```":
            if name:
                found.append(Step(_written(name, body), begin, ends=number))
            elif kind == "console":
                found += _typed(body, begin)
            kind = ""
        elif kind:
            body.append(line)
    return found


def _written(name: str, body: Sequence[str]) -> str:
    return "\n".join([f"cat >{name} <<'{_MARK}'", *body, _MARK])


def _typed(body: Sequence[str], begin: int) -> Iterator[Step]:
    step: Step | None = None
    for number, line in enumerate(body, begin):
        if line.startswith("$ "):
            if step:
                yield step
            text = line.removeprefix("$ ").rstrip()
            step = Step(text, number, refused=text.endswith(REFUSED), ends=number + 1)
        elif step is None:
            raise Wrong(f"line {number + 1}: output before any command")
        elif line.startswith("> ") and not step.shown:
            step.text += f"\n{line.removeprefix('> ')}"
            step.ends = number + 1
        else:
            step.shown.append(line)
            step.ends = number + 1
    if step:
        yield step


def run(steps: Sequence[Step], directory: Path, seconds: float) -> list[list[str]]:
    """Do the steps in one shell; return the lines that each one printed.

    Parameters
    ----------
    directory
        Takes the place of :data:`SHOWN`.

    Raises
    ------
    Wrong
        If a step failed that must not, or the other way round.
    """
    script = "\n".join(["exec 2>&1", *map(_guarded, steps)])
    script = script.replace(SHOWN, str(directory))
    with tempfile.TemporaryFile("w+") as printed:
        _shell(script, printed.fileno(), seconds)
        printed.seek(0)
        everything = printed.read().replace(str(directory), SHOWN)
    return list(_sorted_out(steps, everything))


def _guarded(step: Step) -> str:
    holds = "-ne" if step.refused else "-eq"
    return (
        f"{step.text}\n"
        f"status=$?; echo '{_MARK}' $status; [ $status {holds} 0 ] || exit 99"
    )


def _shell(script: str, output: int, seconds: float) -> None:
    found = subprocess.Popen(
        ["bash", "-c", script],
        cwd=ROOT,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        start_new_session=True,
    )
    try:
        found.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(found.pid, signal.SIGKILL)
        found.wait()


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE", "GNT"))}
    path = f"{Path(sys.executable).parent}:{kept.get('PATH', '')}"
    return kept | {"PATH": path, "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def _sorted_out(steps: Sequence[Step], everything: str) -> Iterator[list[str]]:
    parts = re.split(rf"{_MARK} (\d+)\n", everything)
    for index, step in enumerate(steps):
        last = parts[2 * index : 2 * index + 2]
        if len(last) < 2:
            told = last[0] if last else ""
            raise Wrong(f"line {step.line + 1}: '{step.text}' did not end:\n{told}")
        printed, status = last
        if (status != "0") != step.refused:
            raise Wrong(
                f"line {step.line + 1}: '{step.text}' exited with {status}:\n{printed}"
            )
        yield printed.splitlines()


def tells(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether a page shows what was printed, but for what varies from run to run.

    >>> tells(["a", "...", "z"], ["a", "b", "c", "z"])
    True
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(_steady(line)) + r"\n"
        for line in shown
    )
    text = "".join(f"{_steady(line)}\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


def _steady(line: str) -> str:
    for pattern, word in _VARIES:
        line = pattern.sub(word, line)
    return line.strip()


def check(page: Path, seconds: float = 180.0, *, write: bool = False) -> None:
    """Run a page on a scratch cluster of its own; end the cluster, come what may.

    Parameters
    ----------
    write
        Whether to put what was printed into the page, instead of complaining.

    Raises
    ------
    Wrong
        If the page does not tell the truth.
    """
    text = page.read_text()
    steps = steps_of(text)
    above = Path(tempfile.mkdtemp(prefix="hb-"))
    directory = above / "c"
    try:
        outputs = run(steps, directory, seconds)
    finally:
        for left in above.glob("*/scratch.json"):
            down = [sys.executable, "-m", "moorage.cli.moorage", "down"]
            subprocess.run([*down, str(left.parent)], check=True)
        shutil.rmtree(above)
    wrong = [
        (step, printed)
        for step, printed in zip(steps, outputs, strict=True)
        if not tells(step.shown, printed)
    ]
    if write:
        page.write_text(_corrected(text, wrong))
    elif wrong:
        raise Wrong("\n".join(_complaint(page, *one) for one in wrong))


def _complaint(page: Path, step: Step, printed: Sequence[str]) -> str:
    told = "\n".join(printed)
    return f"{page.name}, line {step.line + 1}: '{step.text}' prints\n{told}\n"


def _corrected(text: str, wrong: Sequence[tuple[Step, Sequence[str]]]) -> str:
    lines = text.splitlines()
    for step, printed in reversed(wrong):
        lines[step.ends - len(step.shown) : step.ends] = printed
    return "\n".join(lines) + "\n"


def pages() -> list[Path]:
    """Return the pages whose commands are run."""
    rooms = (ROOT / "docs" / room for room in ("start", "how-to"))
    every = sorted(page for room in rooms for page in room.glob("*.md"))
    return [page for page in every if "```console" in page.read_text()]


def main() -> int:
    """Run the pages that are named; all of them when none is."""
    parser = argparse.ArgumentParser(description="Run the commands of the docs.")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="correct the pages")
    asked = parser.parse_args()
    for page in asked.pages or pages():
        try:
            check(page, seconds=300.0, write=asked.write)
        except Wrong as wrong:
            sys.stderr.write(f"{page}: {wrong}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
