# SPDX-License-Identifier: BSD-2-Clause
"""Disks of a pc on IDE and SCSI, as Ganeti's guests have them, in a real QEMU."""

import subprocess
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from moorage.errors import Failed
from moorage.node.hypervisors.base import Card
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.monitor import conversation

pytestmark = pytest.mark.real

BEGIN = "qemu-system-x86_64 -name web1 -m 128 -smp 1 "
MACHINE = (
    "-device virtio-balloon -machine pc -monitor none -serial none -usb -net none "
    "-display none -accel tcg -S -qmp stdio "
)
CARD = "-device virtio-net-pci,id=nic-a,bus=pci.0,addr={},mac=aa:00:00:00:00:01"
ON_SCSI = (
    "-drive file={0},format=raw,if=none,id=disk-a,file.locking=off "
    "-device scsi-hd,id=disk-a,bus=scsi.0,channel=0,scsi-id=0,lun=0,drive=disk-a "
    "-drive file={1},format=raw,if=none,id=disk-b,file.locking=off "
    "-device scsi-hd,id=disk-b,bus=scsi.0,channel=0,scsi-id=1,lun=0,drive=disk-b "
)
GANETIS = {
    ("ide", "lsi"): BEGIN
    + MACHINE
    + "-drive file={0},format=raw,if=ide,file.locking=off "
    + "-drive file={1},format=raw,if=ide,file.locking=off "
    + CARD.format("0xe"),
    **{
        ("scsi-hd", kind): BEGIN
        + f"-device {kind},id=scsi "
        + MACHINE
        + ON_SCSI
        + CARD.format("0xc")
        for kind in ("lsi", "megasas", "virtio-scsi-pci")
    },
}
"""The words of Ganeti 3.1 that make the machine of a guest with two disks and a card,
by ``disk_type`` and ``scsi_controller_type``."""
QUERIES = ("query-pci", "query-block")
CHANNEL = 0x1003
MAC = "aa:00:00:00:00:01"


def seen(buses: list[Any], blocks: list[Any]) -> tuple[dict[Any, Any], list[Any]]:
    """Return what a guest sees: devices by slot, but for our channel; and its disks."""
    devices = {
        (one["slot"], one["function"]): (one["class_info"]["class"], kind)
        for one in buses[0]["devices"]
        if (kind := one["id"]["device"]) != CHANNEL
    }
    drives = [one["inserted"]["image"] for one in blocks if "inserted" in one]
    return devices, [one["virtual-size"] for one in drives]


def of_ganetis(words: str, images: list[str]) -> Any:
    asked = [{"execute": name} for name in ("qmp_capabilities", *QUERIES, "quit")]
    done = subprocess.run(
        words.format(*images).split(),
        input=b"\n".join(map(json.encode, asked)),
        capture_output=True,
        check=True,
        timeout=60,
    )
    answers = [json.decode(line) for line in done.stdout.splitlines()]
    return seen(*(one["return"] for one in answers if one.get("return")))


@pytest.mark.parametrize(("kind", "controller"), list(GANETIS))
async def test_disks_are_where_ganeti_has_them(lab, kind: str, controller: str) -> None:
    disks = lab.drive("file", 0), lab.drive("file", 1)
    given = {"machine_version": "pc", "accel": "tcg", "disk_type": kind}
    given |= {"scsi_controller_type": controller, "kernel_path": "", "initrd_path": ""}
    card = Card(uuid="c0", index=0, mac=MAC)
    spec = replace(lab.spec(*disks, **given), cards=(card,))
    await lab.one.start(spec)
    async with conversation(Home(lab.top / "n1", spec.uuid)) as monitor:
        ours = seen(*[await monitor.ask(name) for name in QUERIES])
    images = [one.where.path for one in disks]
    assert ours == of_ganetis(GANETIS[kind, controller], images)
    found = await lab.one.find(spec.uuid)
    assert found.ports == {disks[0].disk: 0, disks[1].disk: 1}
    assert found.cards == {"c0": 14 if kind == "ide" else 12}
    assert found.machine["disk_type"] == kind

    await lab.one.throttle(spec.uuid, disks[1].disk, {"total_iops_sec": 100})
    third, drives = lab.drive("file", 2), disks
    if kind == "ide":
        with pytest.raises(Failed, match="has its disks on IDE: none can be plugged"):
            await lab.one.plug(spec.uuid, third)
    else:
        await lab.one.plug(spec.uuid, third)
        drives = (*disks, third)
        assert (await lab.one.find(spec.uuid)).ports[third.disk] == 2

    found = await lab.one.find(spec.uuid)
    there = replace(
        spec, waits=True, drives=drives, ports=found.ports, places=found.cards
    )
    door = await lab.two.incoming(there)
    await lab.one.migrate(spec.uuid, lab.two.address, door, lambda *_: None)
    moved = await lab.two.find(spec.uuid)
    assert (moved.ports, moved.cards, moved.state) == (
        found.ports,
        found.cards,
        "running",
    )
    await lab.two.stop(spec.uuid, 0)
