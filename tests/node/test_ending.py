# SPDX-License-Identifier: BSD-2-Clause
"""Who is said to have powered itself off: by the last lines of QEMU's log."""

from pathlib import Path

import pytest

from moorage.node.hypervisors.kvm.ending import powered_off

UUID = "0a7f5c6e-3c1d-4a52-9a55-2f1d0c0b7e11"
OFF = "qemu_system_shutdown_request reason=6\n"
BUTTON = "qemu_system_powerdown_request \n"


@pytest.mark.parametrize(
    ("said", "itself"),
    [
        (OFF, True),
        ("warning: something\n" * 10_000 + OFF, True),
        ("", False),
        (BUTTON + OFF, False),
        ("qemu_system_shutdown_request reason=2\n", False),
        (OFF + "qemu_system_shutdown_request reason=4\n", False),
        ("he said qemu_system_shutdown_request reason=6\n", False),
        ("qemu-system-x86_64: terminating on signal 15\n", False),
    ],
)
def test_what_a_log_tells(tmp_path: Path, said: str, itself: bool) -> None:
    (tmp_path / f"{UUID}.log").write_text(said)
    (tmp_path / "agent.log").write_text(OFF)
    assert powered_off(tmp_path) == ((UUID,) if itself else ())


def test_a_guest_that_has_a_process_has_not_ended(tmp_path: Path) -> None:
    home = tmp_path / UUID
    home.mkdir()
    (home / "log").write_text(OFF)
    assert powered_off(tmp_path) == ()
    assert powered_off(tmp_path / "not there") == ()
