# SPDX-License-Identifier: BSD-2-Clause
"""House rules of every test run.

- A default test of a floor that does no I/O by right starts no process.
- Under continuous integration nothing is skipped: a skip is a failure.
- ``--requirements-report FILE`` records which requirements were shown, and how.
- What was drawn, and which cases were tried, is told at the end, by its seed.
"""

import gc
import json
import os
import re
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest
from hypothesis import HealthCheck, settings

from ganetis_files import PACKAGES, Ganeti
from peers import unpacked
from support.sampling import SEED

TESTS = Path(__file__).parent
QUIET_FLOORS = frozenset({"model", "storage", "store", "jobs", "ops"})
SIMULATED_FLOORS = frozenset({"api", "backup", "cli", "copies", "jobs", "ops"})
"""Their nodes are simulated: what a test writes need not outlive a loss of power."""
FREE_MARKERS = ("real", "oracle", "slow")
STARTS_A_PROCESS = frozenset(
    {
        "subprocess.Popen",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
    }
)
settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
"""Nothing is timed: the machine may be slow, and busy with something else."""
WORSE_LAST = ("passed", "xfailed", "skipped", "failed")
_SOUGHT = re.compile(rf"(?<!not )\b(?:{'|'.join(FREE_MARKERS)})\b")
"""A mark that an expression of ``-m`` wants a test to have."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--requirements-report",
        metavar="FILE",
        type=Path,
        help="write the tests marked with a requirement, and their outcomes, to FILE",
    )
    parser.addoption(
        "--fuzz-seed", type=int, default=1, help="which command lines are made up"
    )
    parser.addoption(
        "--fuzz-lines", type=int, default=200, help="how many command lines are typed"
    )
    parser.addoption(
        "--stateful-seed", type=int, default=SEED, help="what happens to a cluster"
    )
    parser.addoption(
        "--stateful-steps", type=int, default=10_000, help="how much happens to it"
    )
    parser.addoption(
        "--cloud-steps", type=int, default=1200, help="how much happens to a cloud"
    )


@cache
def _text(path: Path) -> str:
    return path.read_text()


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("busy")
    os.umask(0o022)  # scripts that a whole group may write to are not run
    path = config.getoption("--requirements-report")
    # Under xdist the controller sees every report; a worker has nothing to write.
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RequirementsReport(path))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"To draw the same again: MOORAGE_SEED={SEED}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without tests that have a mark which is asked for.

    To collect them all costs each worker of such a part ten seconds.
    """
    sought = _SOUGHT.findall(config.option.markexpr)
    if not sought or not collection_path.name.startswith("test_"):
        return None
    return not any(_says(collection_path, name) for name in sought) or None


@cache
def _says(path: Path, name: str) -> bool:
    """Whether a file has tests with a mark, by its words and those of its conftests.

    What is sampled in one part of a run is slow in another.
    """
    above = [one / "conftest.py" for one in path.parents if TESTS in one.parents]
    texts = [_text(one) for one in (path, *above) if one.exists()]
    words = (
        (f"mark.{name}", "support.sampling") if name == "slow" else (f"mark.{name}",)
    )
    return any(word in text for word in words for text in texts)


def pytest_itemcollected(item: pytest.Item) -> None:
    for name in FREE_MARKERS:
        if item.get_closest_marker(name) and not _says(item.path, name):
            raise pytest.UsageError(f"{item.path} must say 'mark.{name}' for -m {name}")
    # A report carries user_properties from a worker to the controller; markers it
    # does not.
    item.user_properties.extend(
        ("requirement", number)
        for mark in item.iter_markers("requirement")
        for number in mark.args
    )


@pytest.fixture(scope="session")
def in_memory() -> Iterator[Path]:
    """Return a directory for simulated nodes, whose disks need not outlive anything.

    They write all that they do to disk at once; in memory that costs nothing.
    """
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with TemporaryDirectory(dir=where, prefix="moorage-") as directory:
        yield Path(directory)


@pytest.fixture(scope="session")
def ganeti() -> Ganeti:
    """Return Ganeti, unpacked."""
    place = unpacked(PACKAGES)
    if place is None:
        if os.environ.get("CI"):
            pytest.fail("Ganeti's packages cannot be had")
        pytest.skip("Ganeti's packages cannot be had")
    return Ganeti(place)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest) -> Path:
    """Return a new directory: in memory, if the nodes of the test are simulated."""
    simulated = _is_fast_in(SIMULATED_FLOORS, request.node)
    if not simulated and not request.node.get_closest_marker("memory"):
        found: Path = request.getfixturevalue("tmp_path")
        return found
    return Path(mkdtemp(dir=request.getfixturevalue("in_memory")))


def pytest_collection() -> None:
    gc.disable()  # no garbage is looked for among ten thousand tests


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


LONG = (
    *("test_soak.py", "test_chaos.py", "test_drbd.py", "test_three_machines.py"),
    *("test_ceph_and_gluster.py", "test_master_killed.py", "test_network.py"),
    *("test_life.py", "test_lvm.py", "test_kvm.py", "test_tour.py"),
    *("test_any_order.py", "test_travelling_exports.py", "test_provider_places.py"),
)
"""Files with long tests: who starts one of them last waits for it alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONG)))


class ProcessStartedError(AssertionError):
    """A default test of a floor without I/O tried to start a program."""


class ProcessGuard:
    """An audit hook that refuses new processes while it is armed.

    Audit hooks cannot be removed, so there is one for the life of the interpreter.
    """

    def __init__(self) -> None:
        self._armed = False
        self._refused: list[str] = []
        self._lock = threading.Lock()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if not self._armed or event not in STARTS_A_PROCESS:
            return
        sentence = f"{event}{self._what(event, args)}"
        with self._lock:
            self._refused.append(sentence)
        raise ProcessStartedError(self._sentence([sentence]))

    @staticmethod
    def _what(event: str, args: tuple[object, ...]) -> str:
        # subprocess.Popen has (executable, args, cwd, env); the environment is noise.
        words = args[1:2] if event == "subprocess.Popen" else args[:2]
        return f": {' '.join(str(word) for word in words)}" if words else ""

    @staticmethod
    def _sentence(refused: list[str]) -> str:
        return (
            f"a default test here starts no process, but it tried {'; '.join(refused)}"
        )

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Refuse processes inside; a refusal that the code swallowed fails at the end.

        Raises
        ------
        ProcessStartedError
            A process was asked for, even if the refusal itself was caught.
        """
        self._refused.clear()
        self._armed = True
        try:
            yield
        finally:
            self._armed = False
        if self._refused:
            raise ProcessStartedError(self._sentence(self._refused))


_GUARD = ProcessGuard()


def _is_fast_in(floors: frozenset[str], item: pytest.Item) -> bool:
    if any(item.get_closest_marker(name) for name in FREE_MARKERS):
        return False
    if not item.path.is_relative_to(TESTS):
        return False
    return item.path.relative_to(TESTS).parts[0] in floors


@contextmanager
def _guarded(item: pytest.Item) -> Iterator[None]:
    if _is_fast_in(QUIET_FLOORS, item):
        with _GUARD.armed():
            yield
    else:
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with _guarded(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _guarded(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    with _guarded(item):
        return (yield)


def _skips_are_failures() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    where = report.longrepr
    return str(where[2]) if isinstance(where, tuple) else str(where)


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail") and _skips_are_failures():
        reason = _reason(report)
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped under CI, but this was: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    report = yield
    _fail_if_skipped(report)
    return report


class RequirementsReport:
    """The tests that carry a requirement's number, each with its worst outcome."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: dict[str, dict[str, object]] = {}
        # An old report must not pass for this run's, should this run die.
        path.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        numbers = [v for key, v in report.user_properties if key == "requirement"]
        if not numbers:
            return
        known = self._tests.setdefault(
            report.nodeid, {"requirements": numbers, "outcome": "passed"}
        )
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        known["outcome"] = max(known["outcome"], outcome, key=WORSE_LAST.index)

    def pytest_sessionfinish(self) -> None:
        content = {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "tests": dict(sorted(self._tests.items())),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(content, indent=1) + "\n")
