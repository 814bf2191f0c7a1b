# SPDX-License-Identifier: BSD-2-Clause
"""A guest's memory is in huge pages, or a sentence says what is missing."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import Failed
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.monitor import conversation
from moorage.units import Mib

pytestmark = pytest.mark.real

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
PAGES = 20


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Path]:
    """Return where a few huge pages are, which are the machine's for a moment."""
    number = POOL / "nr_hugepages"
    before = int(number.read_text())
    where = tmp_path / "huge"
    where.mkdir()
    words = ("mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "none", str(where))
    subprocess.run(words, check=True)
    try:
        number.write_text(str(before + PAGES))
        yield where
    finally:
        number.write_text(str(before))
        subprocess.run(("umount", str(where)), check=True)


async def test_a_guest_has_its_memory_in_huge_pages(lab, pages: Path) -> None:
    """It has them in a process without rights, and moves to where there are none."""
    given = {"mem_path": str(pages), "accel": "tcg"}
    spec = lab.spec(**given, kernel_path="", initrd_path="")
    spec = replace(spec, memory=Mib(32))
    await lab.one.start(spec)
    pid = Home(lab.top / "n1", spec.uuid).pid()
    told = Path(f"/proc/{pid}/status").read_text()
    assert "HugetlbPages:\t   32768 kB" in told
    free = hugely_free()

    more = replace(lab.spec(**given, kernel_path="", initrd_path=""), memory=Mib(64))
    with pytest.raises(Failed, match="64 MiB of memory do not fit into the huge pages"):
        await lab.one.start(more)
    assert await lab.one.find(more.uuid) is None

    seats = (await lab.one.find(spec.uuid)).cards
    usual = spec.hvparams | {"mem_path": ""}
    there = replace(spec, waits=True, hvparams=usual, places=seats)
    door = await lab.two.incoming(there)
    await lab.one.migrate(spec.uuid, lab.two.address, door, lambda *_: None)
    assert (await lab.two.find(spec.uuid)).state == "running"
    await lab.one.discard(spec.uuid)
    assert hugely_free() == free + 16
    await lab.two.stop(spec.uuid, 0)


def hugely_free() -> int:
    return int((POOL / "free_hugepages").read_text())


async def test_usb_and_asynchronous_disks_as_qemu_has_them(lab) -> None:
    given = {
        "accel": "tcg",
        "machine_version": "pc",
        "usb_devices": "keyboard,wacom-tablet,mouse",
        "disk_aio": "native",
        "disk_discard": "ignore",
    }
    spec = lab.spec(lab.drive("file", 0), **given, kernel_path="", initrd_path="")
    await lab.one.start(spec)
    home = Home(lab.top / "n1", spec.uuid)
    async with conversation(home) as monitor:
        names = await monitor.ask("qom-list", path="/machine/peripheral")
    kinds = {one["name"]: one["type"] for one in names}
    assert kinds["on-usb0"] == "child<usb-kbd>"
    assert kinds["on-usb1"] == "child<usb-wacom-tablet>"
    assert kinds["on-usb2"] == "child<usb-mouse>"
    found = await lab.one.find(spec.uuid)
    assert found.machine["usb_devices"] == given["usb_devices"]
    await lab.one.stop(spec.uuid, 0)
