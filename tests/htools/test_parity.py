# SPDX-License-Identifier: BSD-2-Clause
"""A seeded sample of the comparisons with Ganeti's own programs."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import hail as hail_parity
import hbal as hbal_parity
import others

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        not Path(hbal_parity.ORACLE).exists(), reason="ganeti-htools is not installed"
    ),
]


@pytest.mark.requirement("S2-02", "S4-08")
@pytest.mark.parametrize("seed", range(1, 60))
def test_hbal_decides_the_same(seed, tmp_path):
    words, why = hbal_parity.differ(seed, tmp_path)
    assert why == "", words


@pytest.mark.requirement("S0-12", "S2-11")
@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("seed", range(1, 60))
def test_hail_decides_the_same(seed, checks, tmp_path):
    kind, why = hail_parity.differ(seed, tmp_path, checks=checks)
    assert why == "", kind


@pytest.mark.requirement("S2-07")
@pytest.mark.parametrize("program", ["hcheck", "hinfo"])
@pytest.mark.parametrize("seed", range(1, 30))
def test_reports_are_the_same(program, seed, tmp_path):
    words, why = others.differ(program, seed, tmp_path)
    assert why == "", words


@pytest.mark.requirement("S2-09")
@pytest.mark.parametrize("seed", [1, 2, 3, 5, 7, 9, 12, 13])
def test_hspace_counts_the_same(seed, tmp_path):
    words, why = others.differ("hspace", seed, tmp_path)
    assert why == "", words


@pytest.mark.requirement("S4-08")
def test_hbal_keeps_its_bounds_with_nodes_offline():
    """The bound on instances that were not touched once hid the best step here."""
    data = str(Path(__file__).parent / "data" / "two-nodes-offline.data")
    ours = [sys.executable, "-m", "moorage.cli.htools.hbal", "--no-capacity-checks"]
    told = [
        subprocess.run(
            [*argv, "-t", data], capture_output=True, text=True, check=False
        ).stdout
        for argv in (ours, [hbal_parity.ORACLE])
    ]
    assert told[0] == told[1]
