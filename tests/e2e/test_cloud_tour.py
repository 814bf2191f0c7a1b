# SPDX-License-Identifier: BSD-2-Clause
"""The cloud's tour without guests, as it is typed: run, run again, use it, stop."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.daemons import devcloud, process

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
import tour  # noqa: E402 - a program of the docs, not in the package

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent


def make(at: Path, *words: str) -> subprocess.CompletedProcess[str]:
    places = [f"CLOUD_DIR={at}", f"RUN_DIR={at}-none"]
    line = ["make", "-o", ".venv/.installed", *places, *words]
    return subprocess.run(
        line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )


def types(at: Path, line: str) -> str:
    """Type a line in the environment that the tour tells of; return what it prints."""
    told = f'eval "$({BIN}/moorage env {at})"; {line}'
    done = subprocess.run(
        ["sh", "-c", told], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def left(directory: Path) -> list[str]:
    """Return the processes that have something of a directory in line or variables."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            told = [(entry / name).read_bytes() for name in ("cmdline", "environ")]
        except OSError:  # it ended meanwhile
            continue
        ours = any(f"{directory}/".encode() in one for one in told)
        if ours and int(entry.name) != os.getpid():
            found.append(told[0].replace(b"\0", b" ").decode())
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return where a cloud may come up; whatever comes up there is ended."""
    at = tmp_path / "c"
    yield at
    if devcloud.is_one(at):
        devcloud.down(at)
    assert left(at) == []


def test_the_tour_and_its_end(place: Path) -> None:
    done = make(place, "run", "CLOUD=1", "SIM=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert tour.titles(done.stdout) == tour.titles(tour.record(tour.CLOUD))

    again = make(place, "run", "CLOUD=1", "SIM=1")
    assert again.returncode
    told = f"There is a cloud in {place} already; to end it: make stop"
    assert told in again.stderr

    line = done.stdout.partition("Then, for example:")[2].splitlines()[0].strip()
    assert line.startswith("openstack volume create")
    types(place, line)
    assert "more" in types(place, "snf-manage volume-list --fields name")
    assert (place / "clouds.yaml").stat().st_mode & 0o077 == 0

    assert make(place, "stop").returncode == 0
    assert left(place) == []
    assert not place.exists()
    assert "Nothing to stop" in make(place, "stop").stdout


def test_a_tour_that_was_interrupted_is_stopped(place: Path) -> None:
    line = [BIN / "moorage", "tour", place, "--cloud", "--sim"]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, cwd=ROOT) as running:
        doors = place / "a" / "rapi.pid"
        assert process.wait_until(doors.exists, 120)
        running.send_signal(signal.SIGINT)
    assert running.returncode
    assert left(place)
    assert make(place, "stop").returncode == 0
    assert left(place) == []
    assert not place.exists()


@pytest.mark.parametrize("note", ["{}", "no json", '{"root": "/"}'])
def test_down_ends_nothing_by_a_note_that_is_garbled(place: Path, note: str) -> None:
    place.mkdir()
    (place / "scratch-cloud.json").write_text(note)
    done = make(place, "stop")
    assert done.returncode
    assert f"{place}/scratch-cloud.json" in done.stderr
    (place / "scratch-cloud.json").unlink()


def test_what_is_there_already_is_not_walked_over(place: Path) -> None:
    place.mkdir()
    (place / "mine").touch()
    done = make(place, "run", "CLOUD=1", "SIM=1")
    assert done.returncode
    assert f"{place} is not empty" in done.stderr
    assert [one.name for one in place.iterdir()] == ["mine"]
