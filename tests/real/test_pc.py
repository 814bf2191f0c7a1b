# SPDX-License-Identifier: BSD-2-Clause
"""A pc, the machine of Ganeti's guests, in a real QEMU; no system runs in it."""

import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from moorage.errors import Failed
from moorage.node.hypervisors.base import Card
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.monitor import conversation

pytestmark = pytest.mark.real

GANETI = (
    "qemu-system-x86_64 -name web1 -m 128 -smp 1 -device virtio-balloon -machine pc "
    "-monitor none -serial none -usb -net none -display none -accel tcg -S -qmp stdio "
    "-blockdev driver=null-co,node-name=d0,size=1048576 "
    "-blockdev driver=null-co,node-name=d1,size=1048576 "
    "-device virtio-blk-pci,id=disk-a,bus=pci.0,addr=0xc,drive=d0 "
    "-device virtio-blk-pci,id=disk-b,bus=pci.0,addr=0xd,drive=d1 "
    "-device virtio-net-pci,id=nic-a,bus=pci.0,addr=0xe,mac=aa:00:00:00:00:01 "
    "-device virtio-net-pci,id=nic-b,bus=pci.0,addr=0xf,mac=aa:00:00:00:00:02"
)
"""The words of Ganeti 3.1 that make the machine of a guest with two disks and two cards
and no ``machine_version``: all but those that name files, users and cables."""
ASK = b'{"execute":"qmp_capabilities"}{"execute":"query-pci"}{"execute":"quit"}'
MACS = ("aa:00:00:00:00:01", "aa:00:00:00:00:02", "aa:00:00:00:00:03")
CARDS = tuple(Card(uuid=f"c{n}", index=n, mac=mac) for n, mac in enumerate(MACS))
CHANNEL = (3, 1)
"""Where the guest's channel is here: beside the balloon, which is where Ganeti's is."""

Slots = dict[tuple[int, int], tuple[int, int, int]]


def slots(buses: list[Mapping[str, Any]]) -> Slots:
    """Return what a guest sees: class, vendor and kind by slot and function."""
    return {
        (one["slot"], one["function"]): (
            one["class_info"]["class"],
            one["id"]["vendor"],
            one["id"]["device"],
        )
        for one in buses[0]["devices"]
        if (one["slot"], one["function"]) != CHANNEL
    }


def of_ganetis() -> Slots:
    done = subprocess.run(
        GANETI.split(), input=ASK, capture_output=True, check=True, timeout=60
    )
    answers = [json.decode(line) for line in done.stdout.splitlines()]
    return slots(next(one["return"] for one in answers if one.get("return")))


async def of_ours(home: Home) -> Slots:
    async with conversation(home) as monitor:
        return slots(await monitor.ask("query-pci"))


@pytest.fixture
def pc(lab):
    """Return what a pc with two disks and two cards is started with."""
    disks = lab.drive("file", 0), lab.drive("file", 1)
    given = {"machine_version": "pc", "accel": "tcg", "kernel_path": ""}
    return replace(lab.spec(*disks, **given, initrd_path=""), cards=CARDS[:2])


async def test_a_guest_of_ganetis_finds_disks_and_cards_in_their_slots(lab, pc):
    await lab.one.start(pc)
    home = Home(lab.top / "n1", pc.uuid)
    assert await of_ours(home) == of_ganetis()
    found = await lab.one.find(pc.uuid)
    assert found.ports == {pc.drives[0].disk: 12, pc.drives[1].disk: 13}
    assert found.cards == {"c0": 14, "c1": 15}
    await lab.one.stop(pc.uuid, 0)


async def test_a_port_for_the_guest_agent_has_the_first_slot(lab, pc):
    told = replace(pc, hvparams=pc.hvparams | {"use_guest_agent": True})
    await lab.one.start(told)
    found = await lab.one.find(pc.uuid)
    assert found.ports == {pc.drives[0].disk: 13, pc.drives[1].disk: 14}
    assert found.cards == {"c0": 15, "c1": 16}
    assert found.machine["use_guest_agent"] is True
    there = replace(told, waits=True, ports=found.ports, places=found.cards)
    door = await lab.two.incoming(there)
    await lab.one.migrate(pc.uuid, lab.two.address, door, lambda *_: None)
    home = Home(lab.top / "n2", pc.uuid)
    async with conversation(home) as monitor:
        lines = await monitor.ask("query-chardev")
        placed = await monitor.ask(
            "qom-get", path="/machine/peripheral/agent", property="addr"
        )
    assert "agent" in {one["label"] for one in lines}
    assert placed >> 3 == 12
    assert home.file("agent").is_socket()
    await lab.two.stop(pc.uuid, 0)


async def test_what_is_plugged_into_a_pc_moves_with_it_until_it_is_full(lab, pc):
    await lab.one.start(pc)
    third = lab.drive("file", 2)
    await lab.one.plug(pc.uuid, third)
    await lab.one.plug_card(pc.uuid, CARDS[2])
    found = await lab.one.find(pc.uuid)
    assert (found.ports[third.disk], found.cards["c2"]) == (16, 17)

    there = replace(
        pc,
        waits=True,
        drives=(*pc.drives, third),
        cards=CARDS,
        ports=found.ports,
        places=found.cards,
    )
    door = await lab.two.incoming(there)
    await lab.one.migrate(pc.uuid, lab.two.address, door, lambda *_: None)
    moved = await lab.two.find(pc.uuid)
    assert (moved.ports, moved.cards) == (found.ports, found.cards)

    for slot in range(3, 16):
        await lab.two.plug(pc.uuid, lab.drive("file", slot))
    await lab.two.plug_card(pc.uuid, replace(CARDS[0], uuid="c3", index=3))
    with pytest.raises(Failed, match="no free slot: as a pc it has 20 for disks"):
        await lab.two.plug_card(pc.uuid, replace(CARDS[0], uuid="c4", index=4))
    await lab.two.stop(pc.uuid, 0)
