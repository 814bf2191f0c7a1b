# SPDX-License-Identifier: BSD-2-Clause
"""A machine whose KVM opens, runs a firmware, and boots no kernel: a stub of QEMU."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

STUB = """#!{python}
import json, os, sys

words = sys.argv[1:]
if "-accel" not in words or words[words.index("-accel") + 1] != "kvm":
    os.execv("{qemu}", ["qemu-system-x86_64", *words])
if "-bios" in words:
    sys.exit(33)
print("KVM internal error. Suberror: 1", file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)["execute"]
    told = {{"status": "internal-error"}} if asked == "query-status" else {{}}
    print(json.dumps({{"return": told}}), flush=True)
"""


@pytest.fixture
def shown() -> Iterator[Path]:
    """Return a directory that any user comes to, as guests' users must."""
    with tempfile.TemporaryDirectory() as found:
        Path(found).chmod(0o755)
        yield Path(found)


def test_guests_are_emulated_and_the_node_says_why(
    new_town: Callable[[int], Any], shown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without /dev/kvm the reason is that, and the guest runs all the same."""
    qemu = shutil.which("qemu-system-x86_64")
    stub = shown / "qemu-system-x86_64"
    stub.write_text(STUB.format(python=sys.executable, qemu=qemu))
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shown}:{os.environ['PATH']}")
    opens = os.access("/dev/kvm", os.R_OK | os.W_OK)
    with new_town(1) as town:
        town.guest("web1", "node1")
        assert town.inside("web1", "echo answers").strip() == "answers"
        fields = "accelerator,accelerator.reason"
        (row,) = town.ask(f"gnt-node list -o {fields} node1")
        assert row["accelerator"] == "tcg"
        seen = "QEMU stopped with internal-error" if opens else "/dev/kvm"
        assert seen in row["accelerator.reason"]
        assert f"accelerator: tcg ({row['accelerator.reason']})" in town.look(
            "gnt-node info node1"
        ).replace("'", "")
        told = town.type("gnt-node try-accelerator node1")
        assert told.startswith("node1: tcg (")
        town.type("gnt-instance remove -f --shutdown-timeout 0 web1")
