# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's words for screens, CDs and floppies: none where none is asked for."""

import json
import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from moorage.errors import BadInput
from moorage.model import hvscreen
from moorage.model.hvparams import parameters
from moorage.node.hypervisors.base import Card, Drive, GuestSpec
from moorage.node.hypervisors.kvm import blockdev, hotplug
from moorage.node.hypervisors.kvm.commandline import Launch, arguments
from moorage.storage import Where
from moorage.units import Mib

CD = {"cdrom_image_path": "/srv/a.iso"}


def argv(disks: int = 1, **hvparams: Any) -> list[str]:
    """Return the words for a guest with some disks, and eight cards without cables."""
    drives = [
        Drive(disk=f"disk{n}", slot=n, size=Mib(64), where=Where(path=f"/srv/{n}"))
        for n in range(disks)
    ]
    cards = [Card(uuid=f"c{n}", index=n, mac=f"aa:00:00:00:00:0{n}") for n in range(8)]
    spec = GuestSpec(
        uuid="u",
        name="web",
        memory=Mib(64),
        drives=tuple(drives),
        cards=tuple(cards),
        hvparams=hvparams,
    )
    given = parameters(hvparams)
    images = [name for name in hvscreen.MEDIA if getattr(given, name)]
    launch = Launch(
        accel="tcg",
        sockets={"monitor": 3, "console": 4, "channel": 5},
        sets={},
        consolelog=1,
        kernel=8 if given.kernel_path else None,
        cables=[None] * len(cards),
        ports=hotplug.assigned(spec.drives, {}, given),
        data={one.disk: blockdev.Data(blockdev.protocol(one)) for one in drives},
        media={name: number for number, name in enumerate(images, 20)},
    )
    return arguments(spec, given, launch)


def values(words: list[str], option: str) -> list[str]:
    return [value for word, value in pairwise(words) if word == option]


def devices(words: list[str]) -> list[dict[str, Any]]:
    found = [word for word in values(words, "-device") if word[0] == "{"]
    return [json.loads(word) for word in found]


def turns(words: list[str]) -> dict[str, int]:
    """Return the order in which a guest looks for a system, by device."""
    return {one["id"]: one["bootindex"] for one in devices(words) if "bootindex" in one}


def test_a_guest_has_neither_screen_nor_drives_unasked() -> None:
    words = argv()
    assert "-vnc" not in words
    found = values(words, "-device")
    assert not [one for one in found if re.search("VGA|usb|xhci|cd|floppy|ahci", one)]


@pytest.mark.parametrize(("machine", "bus"), [("pc", "agent.0"), ("q35", "serial.0")])
def test_a_guest_agent_has_its_port_where_it_was_asked_for(
    machine: str, bus: str
) -> None:
    given = {"machine_version": machine, "use_guest_agent": True}
    (port,) = [one for one in values(argv(**given), "-device") if "guest_agent" in one]
    assert port.split(",")[:2] == ["virtserialport", f"bus={bus}"]
    assert "guest_agent" not in " ".join(argv(machine_version=machine))


def test_a_pc_has_screen_pointer_and_cds_where_ganetis_had_them() -> None:
    given = {"machine_version": "pc-i440fx-7.2", "cdrom2_image_path": "/srv/b.iso"}
    found = {one.get("id"): one for one in devices(argv(**CD, **given))}
    assert found["screen"]["addr"] == "0x2"
    assert (found["usb"]["driver"], found["usb"]["addr"]) == (
        "piix3-usb-uhci",
        "0x1.0x2",
    )
    discs = [(found[name]["bus"], found[name]["unit"]) for name in ("cd0", "cd1")]
    assert discs == [("ide.0", 0), ("ide.0", 1)]
    assert "screen" not in {one.get("id") for one in devices(argv(**given, vga="none"))}


@pytest.mark.parametrize("given", [{"vga": "std"}, {"vnc_bind_address": "/run"}])
def test_a_screen_listens_nowhere_and_asks_for_a_password(given: Any) -> None:
    words = argv(**given)
    assert values(words, "-vnc") == ["none,password=on"]
    assert {"VGA", "qemu-xhci", "usb-tablet"} <= {d["driver"] for d in devices(words)}


def test_what_ganeti_says_of_a_screen_reaches_qemu() -> None:
    given = {"vga": "cirrus", "usb_mouse": "mouse", "keymap": "de", "vnc_tls": True}
    words = argv(**given)
    assert values(words, "-k") == ["de"]
    assert {"cirrus-vga", "usb-mouse"} <= {one["driver"] for one in devices(words)}
    assert values(words, "-vnc") == ["none,password=on,tls-creds=vnc-tls"]
    (credentials,) = [one for one in values(words, "-object") if "x509" in one]
    assert credentials.endswith("dir=.,endpoint=server,verify-peer=off")


@pytest.mark.parametrize(
    ("given", "order"),
    [
        ({}, {"disk-disk0": 1}),
        ({**CD, "boot_order": "cdrom"}, {"cd0": 1, "disk-disk0": 2}),
        (CD, {"disk-disk0": 1}),
        (
            {"floppy_image_path": "/f", "boot_order": "floppy"},
            {"floppy": 1, "disk-disk0": 2},
        ),
        ({"kernel_path": "/vmlinuz"}, {}),
    ],
)
def test_boot_order(given: Any, order: dict[str, int]) -> None:
    assert turns(argv(2, **given)) == order


@pytest.mark.parametrize(("kind", "driver"), [("", "ide-cd"), ("scsi", "scsi-cd")])
def test_media_are_descriptors_and_read_only(kind: str, driver: str) -> None:
    given = CD | {"cdrom2_image_path": "/srv/b.iso", "cdrom_disk_type": kind}
    words = argv(**given)
    assert [d["driver"] for d in devices(words)].count(driver) == 2
    nodes = [json.loads(one) for one in values(words, "-blockdev")]
    media = [one for one in nodes if one["node-name"] in hvscreen.MEDIA]
    assert [one["file"]["filename"] for one in media] == [
        "/dev/fdset/20",
        "/dev/fdset/21",
    ]
    assert all(one["read-only"] and one["file"]["read-only"] for one in media)
    assert "/srv/a.iso" not in str(words)


def test_no_two_devices_want_one_slot() -> None:
    """A guest with all that there is: a migration needs all addresses, fixed."""
    words = argv(16, vga="std", floppy_image_path="/f", **CD)
    found = [str(one["addr"]) for one in devices(words) if "addr" in one]
    plain = [word for word in values(words, "-device") if word[0] != "{"]
    found += [at[1] for word in plain if (at := re.search(r"addr=([^,]+)", word))]
    whole = Counter(int(one.partition(".")[0], 16) for one in set(found))
    single = [int(one, 16) for one in found if "." not in one]
    assert len(found) == len(set(found))
    assert all(whole[slot] == 1 for slot in single)


@pytest.mark.parametrize("address", ["0.0.0.0", "10.0.0.1", "::"])  # noqa: S104
def test_a_port_that_strangers_reach_wants_a_password(address: str) -> None:
    with pytest.raises(BadInput, match="it needs vnc_password_file"):
        hvscreen.check_open(parameters({"vnc_bind_address": address}))
    safe = {"vnc_bind_address": address, "vnc_password_file": "/etc/vnc"}
    hvscreen.check_open(parameters(safe))
    for local in ("127.0.0.1", "::1", "/run", ""):
        hvscreen.check_open(parameters({"vnc_bind_address": local}))
