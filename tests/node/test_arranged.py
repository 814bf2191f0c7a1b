# SPDX-License-Identifier: BSD-2-Clause
"""A guest moves with the processors that its QEMU has, whatever is on record."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.node.hypervisors.kvm.observing import has_agents_port, is_arranged
from moorage.testing.foreign import until


@pytest.mark.parametrize(
    ("words", "arranged"),
    [
        (("-smp", "2"), False),  # as earlier versions started it
        (("-smp", "2,sockets=2,cores=1"), True),
        (("-m", "64M"), True),
    ],
)
def test_who_was_told_how_processors_are_arranged(
    words: tuple[str, ...], *, arranged: bool
) -> None:
    sleeps = (sys.executable, "-c", "import time; time.sleep(600)", *words)
    with subprocess.Popen(sleeps) as child:
        line = Path(f"/proc/{child.pid}/cmdline")
        until(lambda: words[-1].encode() in line.read_bytes(), "it has no command line")
        assert is_arranged(child.pid) is arranged
        child.kill()


def test_one_that_is_gone_is_as_on_record() -> None:
    assert is_arranged(None)
    assert has_agents_port(None)


def test_one_that_an_earlier_version_started_has_no_port_for_an_agent() -> None:
    assert not has_agents_port(os.getpid())
