# SPDX-License-Identifier: BSD-2-Clause
"""Change the code a little, one change at a time, and see whether tests notice.

Usage: ``mutants.py [--tests "PATH ..."] PATTERN ...``. A pattern names changes:
``moorage.jobs.locks.*``, or one of those that an earlier run has named. Only modules
that a pattern names are changed, and the tests are those of their floor unless others
are named; so an answer takes minutes. Each change that no test has noticed is shown.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from shutil import rmtree

from mutmut import __main__ as mutmut
from mutmut import configuration
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

TRIED = Path("mutants")
"""The copy of the project that is changed; mutmut takes no other."""
LOG = Path(".build/mutants.log")
NOTICED = ("killed", "timeout", "segfault", "caught by type check")


def modules(patterns: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the modules that patterns name: name and file."""
    wanted = list(patterns)
    for path in sorted(Path("src").rglob("*.py")):
        name = ".".join(path.with_suffix("").parts[1:])
        if any(
            fnmatch(f"{name}.x", one) or one.startswith(f"{name}.") for one in wanted
        ):
            yield name, path


def floors(names: Iterable[str]) -> list[str]:
    """Return the directories of tests that modules have to themselves."""
    found = sorted({f"tests/{name.split('.')[1]}" for name in names})
    return [one for one in found if Path(one).is_dir()]


def survivors(files: Iterable[Path], patterns: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the changes that no test has noticed, and say how many were tried."""
    count = 0
    for path in files:
        data = SourceFileMutationData(path=path)
        data.load()
        for name, status in data.exit_code_by_key.items():
            if any(fnmatch(name, one) for one in patterns):
                count += 1
                if status_by_exit_code[status] not in NOTICED:
                    yield name, get_diff_for_mutant(name, path=path)
    print(f"\n{count} changes tried")


def tried(patterns: list[str], children: int) -> bool:
    """Try the changes; False if the tests fail without any, which is shown."""
    rmtree(TRIED, ignore_errors=True)  # what was chosen last time is changed no more
    try:
        with LOG.open("w") as log, redirect_stdout(log):
            mutmut._run(patterns, children)  # noqa: SLF001
    except SystemExit:
        print(LOG.read_text(), file=sys.stderr)
        return False
    return True


def main() -> int:
    """Try the changes that are named; return 1 if one was not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", default="", help="files and directories of tests")
    parser.add_argument("--children", type=int, default=1, help="changes at one time")
    parser.add_argument("patterns", nargs="+", metavar="PATTERN")
    asked = parser.parse_args()
    chosen = dict(modules(asked.patterns))
    tests = asked.tests.split() or floors(chosen)
    if not chosen or not tests:
        print("No module, or no tests, for", *asked.patterns, file=sys.stderr)
        return 2
    configuration._config = replace(  # noqa: SLF001
        configuration.config(),
        only_mutate=[str(path) for path in chosen.values()],
        pytest_add_cli_args_test_selection=tests,
    )
    if not tried(asked.patterns, asked.children):
        return 2
    left = 0
    for name, change in survivors(chosen.values(), asked.patterns):
        left += 1
        print(f"\n# {name}\n{change}")
    print(f"{left} were not noticed by {' '.join(tests)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
