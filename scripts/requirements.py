# SPDX-License-Identifier: BSD-2-Clause
"""The requirements report: a line a requirement, with the tests that show it.

Usage: ``requirements.py LIST.md DIRECTORY``. The list is the project's table of
requirements; the directory holds what ``pytest --requirements-report`` wrote. The exit
status is 1 if a requirement fails, or a test names a number that is not in the list.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROW = re.compile(r"^\| (S\d+-F?\d+) \|", re.MULTILINE)
PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


class Result(NamedTuple):
    """One test's outcome for one requirement."""

    number: str
    test: str
    outcome: str


def read_numbers(path: Path) -> list[str]:
    """Return the requirements' numbers, in the list's order."""
    return ROW.findall(path.read_text())


def read_results(path: Path) -> list[Result]:
    """Return a report's results, one for each pair of test and requirement."""
    tests = json.loads(path.read_text())["tests"]
    return [
        Result(number, PARAMETERS.sub("", test), facts["outcome"])
        for test, facts in tests.items()
        for number in facts["requirements"]
    ]


def verdict(outcomes: Iterable[str]) -> str:
    """Return ``fail`` if a test failed, ``pass`` if one passed, else ``none``."""
    seen = set(outcomes)
    if seen & {"failed", "xfailed"}:
        return "fail"
    return "pass" if "passed" in seen else "none"


def lines(numbers: list[str], results: list[Result]) -> list[tuple[str, str, str]]:
    """Return number, verdict and tests of each requirement."""
    rows = []
    for number in numbers:
        mine = [result for result in results if result.number == number]
        tests = ", ".join(sorted({result.test for result in mine}))
        rows.append((number, verdict(result.outcome for result in mine), tests))
    return rows


def main(arguments: list[str]) -> int:
    """Print the report; return the exit status."""
    numbers = read_numbers(Path(arguments[0]))
    reports = sorted(Path(arguments[1]).glob("*.json"))
    results = [result for report in reports for result in read_results(report)]
    rows = lines(numbers, results)
    for number, word, tests in rows:
        print(f"{number:<7} {word:<4}  {tests}".rstrip())
    words = [word for _, word, _ in rows]
    counts = ", ".join(f"{words.count(w)} {w}" for w in ("pass", "fail", "none"))
    print(f"{len(rows)} requirements: {counts}")
    strays = sorted({(r.number, r.test) for r in results if r.number not in numbers})
    for number, test in strays:
        print(f"{test} names {number}, which is not a requirement", file=sys.stderr)
    return 1 if strays or "fail" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
