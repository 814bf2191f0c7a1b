# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a scratch cluster is found, however its processes were started."""

import subprocess
import sys
from pathlib import Path

import pytest

from moorage.daemons import cleanup


@pytest.mark.parametrize("relative", [False, True])
def test_an_agent_is_found_by_its_directory(tmp_path: Path, relative: bool) -> None:
    root = tmp_path / "harbour"
    (root / "node1").mkdir(parents=True)
    named = "harbour/node1" if relative else str(root / "node1")
    idle = "import time; print(flush=True); time.sleep(60)"
    words = [sys.executable, "-c", idle, "agent", named]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE) as agent:
        assert agent.stdout
        agent.stdout.readline()
        found = [*cleanup.processes(root)], [*cleanup.processes(root, "/node1")]
        elsewhere = [*cleanup.processes(root, "/node2")]
        agent.kill()
    assert found == ([agent.pid], [agent.pid])
    assert not elsewhere
