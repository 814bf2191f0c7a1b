# SPDX-License-Identifier: BSD-2-Clause
"""A bounded run of the chaos driver; ``make chaos SEED=7 KILLS=1000`` is the long one.

Twelve clients or a few, on a cluster of real processes behind proxies: masters and
agents are killed and stopped, other nodes take the lead, file systems fill up, replies
are cut and requests come late. In quiet, storage, guests, agents and configuration tell
one story, and it is the one that was acknowledged.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.sampling import SEED

HERE = Path(__file__).parent
GUEST = Path(__file__).parents[2] / ".build" / "guest"


def broken(account: Path, *options: str, program: str = "run.py") -> str:
    """Return what the driver says; fail if it found a fault."""
    done = subprocess.run(
        [sys.executable, HERE / program, "--account", account, *options],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(960)
def test_nothing_is_lost_doubled_or_left(tmp_path: Path) -> None:
    """Others are killed, and at other moments, in each run."""
    told = broken(tmp_path, "--seed", f"{SEED}", "--kills", "14", "--clients", "8")
    assert "no fault" in told


@pytest.mark.real
@pytest.mark.timeout(960)
def test_nothing_is_lost_doubled_or_left_with_real_guests(tmp_path: Path) -> None:
    few = ("--seed", "1", "--kills", "7", "--clients", "3", "--guest", f"{GUEST}")
    assert "no fault" in broken(tmp_path, *few)


@pytest.mark.real
@pytest.mark.timeout(960)
def test_what_was_acknowledged_outlives_a_power_cut(tmp_path: Path) -> None:
    few = ("--seed", "1", "--cuts", "1", "--clients", "3", "--only", "candidate")
    assert "no fault" in broken(tmp_path, *few, program="power_cuts.py")


def test_the_account_sums_up_all_runs_and_forgets_no_violation(tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    one = {
        "commit": "abc", "kind": "chaos", "seed": 1, "acknowledged": 40,
        "kills": {"masters": 3, "agents": 2}, "failovers": {"planned": 1},
        "events": {}, "violations": [],
    }  # fmt: skip
    lost = {"kind": "lost", "text": "job 1 was told as success, is error"}
    for line in (one, one | {"seed": 2, "violations": [lost]}):
        with runs.open("a") as file:
            file.write(json.dumps(line) + "\n")
    ask = [sys.executable, HERE / "ledger.py", tmp_path]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"all runs of {tmp_path}: 10 kills, seeds chaos 1, chaos 2" in done.stdout
    assert "violations: lost 1" in done.stdout
    assert "acknowledged 80" in done.stdout


@pytest.mark.parametrize(("word", "told"), [("judged", "none"), ("mended", "mended")])
def test_a_violation_that_is_none_any_more_is_judged_in_a_line_of_its_own(
    tmp_path: Path, word: str, told: str
) -> None:
    one = {
        "commit": "abc", "kind": "chaos", "seed": 1, "acknowledged": 40,
        "kills": {"masters": 3}, "failovers": {}, "events": {}, "told": "x.jsonl",
        "violations": [{"kind": "lost", "text": "job 1 is lost"}],
    }  # fmt: skip
    lines = (one, {word: "x.jsonl", "why": "nothing was promised"})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "runs.jsonl").write_text(text)
    ask = [sys.executable, HERE / "ledger.py", tmp_path]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"judged: {told} (nothing was promised) 1" in done.stdout
