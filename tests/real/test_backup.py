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
COUNT = """
n=0
while [ ! -e /tmp/enough ]; do
  n=$((n+1))
  printf '%08d' $n | dd of={0} bs=512 seek=100 conv=fsync 2>/dev/null
  printf '%08d' $n | dd of={1} bs=512 seek=100 conv=fsync 2>/dev/null
done
"""


@pytest.fixture(scope="module")
def web(town: Any) -> Iterator[Any]:
    """A guest that boots from its first disk; disks of a file, a device and a URI."""
    town.type(f"{TINY} -n node1 web1")
    yield town
    for name in json.loads(town.look("gnt-instance list -o name --json")):
        town.type(f"gnt-instance remove -f {name['name']}")
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
    return int(data[51200:51208])


def test_a_guest_writes_while_its_disks_are_exported(web: Any) -> None:
    _, second, third = web.disks("web1")
    one, two = web.device("web1", second), web.device("web1", third)
    kept = web.write("web1", second)
    writing = COUNT.format(one, two).replace("\n", "\n")
    web.inside(
        "web1", f"cat > /tmp/count <<'E'\n{writing}\nE\nsh /tmp/count >/dev/null 2>&1 &"
    )
    web.type("gnt-backup export --noshutdown --rate 16M web1")
    at = folder(web, "web1")
    told = manifest(at)
    assert told["moment"] == "running"
    counts = [counter(raw(at / dump["file"])) for dump in told["dumps"][1:]]
    now = int(
        web.inside("web1", f"dd if={two} bs=512 skip=100 count=1 2>/dev/null")[:8]
    )
    assert counts[0] - counts[1] in (0, 1)  # of one moment, in the order of the writes
    assert 0 < counts[0] < now  # and of the beginning: much was written since
    web.inside("web1", "touch /tmp/enough")
    web.type("gnt-backup import --src-dir web1 --start -n node1 web2")
    first = web.disks("web2")[0]
    assert web.inside("web2", "cat /etc/moorage-system").startswith(
        f"disk {first[:20]}"
    )
    assert web.checksum("web2", web.disks("web2")[1])[:0] == ""
    del kept
