# SPDX-License-Identifier: BSD-2-Clause
"""A guest that talks without end on its console does not fill its node."""

import os
from pathlib import Path

import pytest

from moorage.node.hypervisors.kvm import consoles


def test_a_log_is_cut_while_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "guest" / "consolelog"
    log.parent.mkdir()
    with log.open("ab", buffering=0) as writer:
        for number in range(40_000):
            writer.write(b"line %08d of a guest that talks without end\n" % number)
        assert log.stat().st_size > consoles.LARGEST
        consoles.cut(tmp_path)
        assert log.stat().st_size == consoles.KEPT
        writer.write(b"and on\n")
    assert log.read_bytes().endswith(
        b"line 00039999 of a guest that talks without end\nand on\n"
    )
    assert log.stat().st_size == consoles.KEPT + 7


def test_short_logs_and_other_files_are_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "guest" / "consolelog"
    log.parent.mkdir()
    log.write_text("booting\n")
    (tmp_path / "accelerator.json").write_text("{}")
    consoles.cut(tmp_path)
    assert log.read_text() == "booting\n"


def test_a_log_that_its_qemu_cuts_at_the_same_moment_is_no_end_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU has it open for writing, and may be the guest's by now."""
    logs = [tmp_path / name / "consolelog" for name in ("rogue", "other")]
    for log in logs:
        log.parent.mkdir()
        log.write_bytes(b"x" * (consoles.LARGEST + 1))
    cut = consoles._cut

    def raced(log: Path) -> None:
        if log == logs[0]:
            os.truncate(log, 0)
        cut(log)

    monkeypatch.setattr(consoles, "_cut", raced)
    consoles.cut(tmp_path)
    assert logs[1].stat().st_size == consoles.KEPT
