# SPDX-License-Identifier: BSD-2-Clause
"""Exports of real guests: what a guest writes meanwhile, and what comes back."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

TINY = (
    "gnt-instance add -o tiny --no-nics -t sharedfile --disk 0:size=64M"
    " --disk 1:size=32M,dev_type=ext,provider=loop,name=second"
    " --disk 2:size=16M,dev_type=ext,provider=qsd,name=third"
)
AT = 4096 * 512
COUNT = """
n=0
while [ ! -e /tmp/enough ]; do
  n=$((n+1))
  printf '%08d' $n | dd of={0} bs=512 seek=4096 conv=fsync 2>/dev/null
  printf '%08d' $n | dd of={1} bs=512 seek=4096 conv=fsync 2>/dev/null
done
"""


@pytest.fixture(scope="module")
def web(town: Any) -> Iterator[Any]:
    """A guest that boots from its first disk; disks of a file, a device and a URI."""
    town.type(f"{TINY} -n node1 web1")
    yield town
    for name in ("web1", "web2"):
        town.type(f"gnt-instance remove -f {name}")
    town.type("gnt-backup remove -f web1")
    assert town.healthy()
    assert town.stage.volumes() == set()


def folder(town: Any, name: str, node: str = "node1") -> Path:
    return Path(town.path / "export" / node / name)


def manifest(at: Path) -> dict[str, Any]:
    return dict(json.loads((at / "manifest.json").read_text()))


def raw(dump: Path) -> bytes:
    told = dump.with_suffix(".img")
    subprocess.check_call(["qemu-img", "convert", "-O", "raw", dump, told])
    data = told.read_bytes()
    told.unlink()
    return data


def counter(data: bytes) -> int:
    return int(data[AT : AT + 8])


def test_a_guest_writes_while_its_disks_are_exported(web: Any) -> None:
    _, second, third = web.disks("web1")
    one, two = web.device("web1", second), web.device("web1", third)
    kept = web.write("web1", second)  # its first MiB; counters are written behind it
    script = f"cat > /tmp/count <<'E'\n{COUNT.format(one, two)}\nE\n"
    web.inside("web1", f"{script}sh /tmp/count >/dev/null 2>&1 &")
    web.type("gnt-backup export --noshutdown --rate 16M web1")
    at = folder(web, "web1")
    told = manifest(at)
    assert told["moment"] == "running"
    counts = [counter(raw(at / dump["file"])) for dump in told["dumps"][1:]]
    look = f"dd if={two} bs=512 skip=4096 count=1 2>/dev/null"
    now = int(web.inside("web1", look)[:8])
    assert counts[0] - counts[1] in (0, 1)  # of one moment, in the order of the writes
    assert 0 < counts[0] < now  # and of the beginning: much was written since
    web.inside("web1", "touch /tmp/enough")
    web.type("gnt-backup import --src-dir web1 --start -n node1 web2")
    first, copy, _ = web.disks("web2")
    booted = web.inside("web2", "cat /etc/moorage-system")
    assert booted.startswith(f"disk {first[:20]}")
    assert web.checksum("web2", copy) == kept
