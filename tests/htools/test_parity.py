# SPDX-License-Identifier: BSD-2-Clause
"""A seeded sample of the comparisons with Ganeti's own programs."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from moorage.htools import sample
from moorage.htools.formats import text

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import loads
import runs
import sweep

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        not runs.is_installed(), reason="ganeti-htools is not installed"
    ),
]


def holds(name, seed, folder):
    """Compare on the cluster of a seed; a comparison that was skipped shows nothing."""
    trial = sweep.TRIALS[name](seed, folder)
    assert trial.why == "", trial.words
    assert trial.skipped == "", trial.words


@pytest.mark.requirement("S2-02", "S4-08")
@pytest.mark.parametrize("seed", range(1, 60))
def test_hbal_decides_the_same(seed, tmp_path):
    holds("hbal", seed, tmp_path)


@pytest.mark.requirement("S0-12", "S2-11")
@pytest.mark.parametrize("name", ["hail", "hail-n1"])
@pytest.mark.parametrize("seed", range(1, 60))
def test_hail_decides_the_same(seed, name, tmp_path):
    holds(name, seed, tmp_path)


@pytest.mark.requirement("S2-07")
@pytest.mark.parametrize("name", ["hcheck", "hinfo"])
@pytest.mark.parametrize("seed", range(1, 30))
def test_reports_are_the_same(name, seed, tmp_path):
    holds(name, seed, tmp_path)


@pytest.mark.requirement("S2-09")
@pytest.mark.parametrize("seed", [1, 2, 3, 5, 7, 9, 12, 13])
def test_hspace_counts_the_same(seed, tmp_path):
    holds("hspace", seed, tmp_path)


@pytest.mark.parametrize("seed", range(1, 20))
def test_measured_load_is_used_the_same(seed, tmp_path):
    fleet = sample.cluster(seed)
    data = tmp_path / "cluster.data"
    data.write_text(text.dump(fleet))
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    words = ["-t", str(data), *loads.measured(draw, fleet, tmp_path), "-p"]
    words += ["-G", fleet.groups[0].name]
    mine = runs.ours("hbal", [*words, "--no-capacity-checks"])
    assert runs.first_difference(mine, runs.theirs("hbal", words)) == ""


@pytest.mark.requirement("S4-08")
def test_hbal_keeps_its_bounds_with_nodes_offline():
    """The bound on instances that were not touched once hid the best step here."""
    data = str(Path(__file__).parent / "data" / "two-nodes-offline.data")
    ours = [sys.executable, "-m", "moorage.cli.htools.hbal", "--no-capacity-checks"]
    told = [
        subprocess.run(
            [*argv, "-t", data], capture_output=True, text=True, check=False
        ).stdout
        for argv in (ours, [runs.oracle("hbal")])
    ]
    assert told[0] == told[1]
