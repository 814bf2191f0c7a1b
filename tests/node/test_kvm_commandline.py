# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's command line, the parameters behind it, and the names of block nodes."""

import json
from itertools import pairwise

import pytest

from moorage.errors import BadInput, Failed, NotSupported
from moorage.model.hvparams import parameters
from moorage.model.objects import MOST_DISKS
from moorage.node.hypervisors.base import Card, Drive, GuestSpec
from moorage.node.hypervisors.kvm import blockdev, hotplug, netdev
from moorage.node.hypervisors.kvm.commandline import (
    Launch,
    arguments,
    kernel_arguments,
)
from moorage.storage import Where
from moorage.units import Mib

UUID = "0f2b9a1e-0000-4000-8000-000000000001"
DISKS = [f"5e0d5f9c-8c5e-4d8e-9d0b-00000000000{n}" for n in range(3)]
DIRECT = {"direct": True, "no-flush": False}


def drive(number, where, **more):
    return Drive(disk=DISKS[number], slot=number, size=Mib(64), where=where, **more)


FILE = Where(path="/srv/a,b")
DEVICE = Where(path="/dev/loop7", block=True)
NBD = Where(uris={"kvm": "nbd:unix:/run/x.sock:exportname=d"})


def spec(*given, **more):
    return GuestSpec(uuid=UUID, name="web", memory=Mib(256), drives=given, **more)


def data(one):
    """Return a drive's data as QEMU reaches them, with paths for descriptors."""
    return blockdev.Data(blockdev.protocol(one))


def argv(guest, *, incoming=False, accel="tcg"):
    given = parameters(guest.hvparams)
    launch = Launch(
        accel=accel,
        sockets={"monitor": 3, "console": 4, "channel": 5},
        sets={1: (6, ""), 2: (7, DISKS[0])},
        consolelog=1,
        kernel=8 if given.kernel_path else None,
        initrd=9 if given.initrd_path else None,
        cables=[
            netdev.cable(card.uuid, ["10"], []) if card.link else None
            for card in guest.cards
        ],
        ports=hotplug.assigned(guest.drives, {}, given),
        data={one.disk: data(one) for one in guest.drives},
        incoming=incoming,
    )
    return arguments(guest, given, launch)


def values(words, option):
    pairs = pairwise(words)
    return [value for word, value in pairs if word == option]


def test_a_guest_has_a_port_for_each_disk_that_ganeti_allows():
    ports = [v for v in values(argv(spec()), "-device") if "id=port" in v]
    assert len(ports) == MOST_DISKS == 16
    assert len({port.split("addr=")[1] for port in ports}) == 16


@pytest.mark.requirement("S0-65")
def test_drives_are_blockdev_options_only():
    words = argv(spec(drive(0, FILE), drive(1, DEVICE), drive(2, NBD)))
    lower = [json.loads(word) for word in values(words, "-blockdev")[::2]]
    upper = [json.loads(word) for word in values(words, "-blockdev")[1::2]]
    assert [node["driver"] for node in lower] == ["file", "host_device", "nbd"]
    assert lower[0]["filename"] == "/srv/a,b"
    assert lower[2]["export"] == "d"
    assert {node["driver"] for node in upper} == {"raw"}
    assert [node["file"] for node in upper] == [node["node-name"] for node in lower]
    assert all(node["discard"] == "unmap" for node in lower + upper)
    assert "-drive" not in words


def test_local_drives_bypass_the_cache_and_remote_ones_have_none():
    words = argv(spec(drive(0, FILE), drive(1, NBD)))
    nodes = [json.loads(word) for word in values(words, "-blockdev")]
    assert [node.get("cache") for node in nodes] == [DIRECT, DIRECT, None, None]


def test_the_guest_sees_the_first_twenty_characters_as_serial_number():
    words = argv(spec(drive(0, FILE)))
    device = json.loads(values(words, "-device")[-1])
    assert device["serial"] == DISKS[0][:20]
    assert device["bus"] == "port0"
    assert device["bootindex"] == 1


def test_a_guest_with_a_kernel_does_not_boot_from_its_disk():
    given = {"kernel_path": "/k", "initrd_path": "/i", "root_path": "/dev/vda1"}
    words = argv(spec(drive(0, FILE), hvparams=given))
    assert "bootindex" not in json.loads(values(words, "-device")[-1])
    assert values(words, "-kernel") == ["/proc/self/fd/8"]
    assert values(words, "-initrd") == ["/proc/self/fd/9"]
    assert values(words, "-append") == ["root=/dev/vda1 ro console=ttyS0,38400"]


def test_kernel_arguments_keep_a_console_that_was_asked_for():
    asked = parameters({"kernel_args": "console=tty0 quiet", "root_path": None})
    assert kernel_arguments(asked) == "console=tty0 quiet"


def test_an_incoming_guest_waits():
    assert values(argv(spec(), incoming=True), "-incoming") == ["defer"]
    assert "-incoming" not in argv(spec())


def test_parameters_of_ganeti_reach_qemu():
    given = {
        "acpi": "False",
        "cpu_type": "Nehalem",
        "kvm_extra": "-global 'a=b c'",
        "machine_version": "pc-q35-7.2",
        "serial_console": False,
        "disk_cache": "writethrough",
        "vnc_bind_address": "127.0.0.1",
    }
    words = argv(spec(drive(0, FILE), hvparams=given))
    (machine,) = values(words, "-machine")
    assert machine.split(",")[0] == "pc-q35-7.2"
    assert "acpi=off" in machine.split(",")
    assert values(words, "-cpu") == ["Nehalem"]
    assert values(words, "-global")[-1] == "a=b c"
    assert "-serial" not in words
    assert json.loads(values(words, "-device")[-1])["write-cache"] == "off"


def test_the_processor_follows_the_accelerator():
    assert values(argv(spec(), accel="kvm"), "-cpu") == ["host"]
    assert values(argv(spec()), "-cpu") == ["max"]


def test_files_are_handed_over_as_descriptors():
    words = argv(spec(drive(0, FILE)))
    assert values(words, "-add-fd") == [
        "fd=6,set=1",
        f"fd=7,set=2,opaque={DISKS[0]}",
    ]
    assert "logfile=/dev/fdset/1," in values(words, "-chardev")[1]


CARDS = (
    Card(uuid="a", mac="aa:00:00:00:00:01", link="br0"),
    Card(uuid="b", index=1, mac="aa:00:00:00:00:02"),
)


def devices(words):
    return [json.loads(one) for one in values(words, "-device") if one[0] == "{"]


def test_cards_have_seats_and_one_without_a_bridge_has_no_cable():
    words = argv(spec(cards=CARDS))
    assert values(words, "-netdev") == ["tap,id=cable-a,fd=10"]
    assert [card["bus"] for card in devices(words)] == ["seat0", "seat1"]
    assert [card.get("netdev") for card in devices(words)] == ["cable-a", None]


def test_a_guest_of_an_older_agent_has_the_same_cards_at_its_destination():
    words = argv(spec(cards=CARDS, waits=True), incoming=True)
    assert not [one for one in values(words, "-device") if "id=seat" in one]
    assert [card["addr"] for card in devices(words)] == ["0x10", "0x11"]


def test_cards_sit_at_the_destination_where_they_sat_before():
    moved = spec(cards=CARDS, waits=True, places={"a": 5, "b": 0})
    found = devices(argv(moved, incoming=True))
    assert [card["bus"] for card in found] == ["seat5", "seat0"]


def test_a_card_is_what_its_parameters_say():
    given = parameters({"nic_type": "rtl8139", "virtio_net_queues": 4})
    assert netdev.device(CARDS[0], 0, given, cabled=True)["driver"] == "rtl8139"
    given = parameters({"virtio_net_queues": 4})
    made = netdev.device(CARDS[0], 0, given, cabled=True)
    assert (made["driver"], made["mq"], made["vectors"]) == ("virtio-net-pci", True, 10)
    cable = netdev.cable("a", ["1", "2"], ["3", "4"])
    told = "tap,id=cable-a,fds=1:2,vhost=on,vhostfds=3:4"
    assert netdev.typed(cable) == told


def test_a_guest_has_only_the_devices_that_it_needs():
    words = argv(spec())
    assert "-nodefaults" in words
    machine = set(values(words, "-machine")[0].split(","))
    assert {"usb=off", "sata=off", "smbus=off", "vmport=off"} <= machine
    kinds = {value.split(",")[0] for value in values(words, "-device")}
    needed = {"virtio-serial-pci", "virtserialport", "pcie-root-port"}
    assert kinds == needed | {"virtio-balloon-pci"}
    lean = argv(spec(hvparams={"balloon": False}))
    assert {value.split(",")[0] for value in values(lean, "-device")} == needed
    assert "-netdev" not in words
    assert "-nic" not in words


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"boot_order": "tape"}, "cdrom, disk, floppy, network"),
        ({"disk_cache": "fast"}, "writeback"),
        ({"machine_version": "isapc"}, "pc or q35"),
        ({"migration_port": "many"}, "migration_port"),
    ],
)
def test_a_parameter_that_cannot_be_honoured_is_refused(given, word):
    with pytest.raises(BadInput, match=word):
        parameters(given)


@pytest.mark.parametrize(
    ("cache", "direct", "expected"),
    [
        ("default", True, DIRECT),
        ("default", False, {"direct": False, "no-flush": False}),
        ("none", False, DIRECT),
        ("writeback", True, {"direct": False, "no-flush": False}),
        ("unsafe", True, {"direct": False, "no-flush": True}),
    ],
)
def test_the_cache_follows_the_parameter_and_the_file_system(cache, direct, expected):
    assert parameters({"disk_cache": cache}).cache(direct=direct) == expected


def test_node_names_fit_and_tell_disks_apart():
    names = {
        name
        for disk in DISKS
        for stack in blockdev.stacks(disk)
        for name in (stack.upper, *stack.lowers)
    }
    assert len(names) == 18
    assert max(map(len, names)) <= 31


def test_a_device_tells_its_disk():
    assert blockdev.disk_of(blockdev.device_name(DISKS[0])) == DISKS[0]
    assert blockdev.disk_of("port3") is None


def test_a_read_only_drive_is_read_only_all_the_way_down():
    one = drive(0, FILE, mode="ro")
    given = parameters({})
    assert blockdev.lower_node(one, data(one), "p", given)["read-only"] is True
    assert blockdev.upper_node(one, data(one), "d", "p", given)["read-only"] is True


@pytest.mark.requirement("S0-65")
def test_a_uri_is_preferred_when_userspace_access_is_wanted():
    both = Where(path="/dev/loop7", block=True, uris={"kvm": "file:/srv/image"})
    assert blockdev.source(drive(0, both)) == "/dev/loop7"
    assert blockdev.source(drive(0, both, userspace=True)) == "file:/srv/image"
    with pytest.raises(NotSupported):
        blockdev.source(drive(0, Where(uris={"xen": "x"})))


def test_a_drive_goes_to_the_port_of_its_slot_or_the_first_free_one():
    assert hotplug.free_port(3, {0, 1}) == 3
    assert hotplug.free_port(1, {0, 1}) == 2
    assert hotplug.free_port(40, {0}) == 1
    assert hotplug.free_port(0, range(MOST_DISKS)) is None


def test_more_drives_than_ports_are_refused():
    many = [
        Drive(disk=f"d{n}", slot=n, size=Mib(4), where=FILE)
        for n in range(MOST_DISKS + 1)
    ]
    with pytest.raises(Failed, match="no free port"):
        hotplug.assigned(many, {}, parameters({}))


def test_ports_that_are_wanted_are_kept():
    both, given = [drive(0, FILE), drive(1, NBD)], parameters({})
    found = hotplug.assigned(both, {DISKS[0]: 1}, given)
    assert found == {DISKS[0]: 1, DISKS[1]: 0}


def test_the_clock_the_reboot_and_the_console_are_what_was_asked_for():
    given = {"use_localtime": True, "reboot_behavior": "exit", "serial_speed": 9600}
    words = argv(spec(hvparams={**given, "kernel_path": "/k"}))
    assert values(words, "-rtc") == ["base=localtime"]
    assert "-no-reboot" in words
    assert values(words, "-append") == ["ro console=ttyS0,9600"]


def test_a_cards_address_is_no_option_of_qemus():
    injected = Card(mac="aa:00:00:11:22:44,romfile=/etc/passwd")
    made = json.loads(values(argv(spec(cards=(injected,))), "-device")[-1])
    assert made["mac"] == injected.mac
    assert "romfile" not in made


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "auto"),
        ({"kvm_flag": "disabled"}, "tcg"),
        ({"kvm_flag": "enabled"}, "kvm"),
        ({"kvm_flag": "enabled", "accel": "tcg"}, "tcg"),
    ],
)
def test_the_accelerator_has_two_names(given, wanted):
    assert parameters(given).accelerator == wanted


def test_qemu_is_in_its_sandbox_unless_another_one_was_asked_for():
    (box,) = values(argv(spec()), "-sandbox")
    assert set(box.split(",")) == {
        "on",
        "obsolete=deny",
        "elevateprivileges=deny",
        "spawn=deny",
        "resourcecontrol=deny",
    }
    own = spec(hvparams={"kvm_extra": "-sandbox off"})
    assert values(argv(own), "-sandbox") == ["off"]


@pytest.mark.parametrize("incoming", [False, True])
def test_a_guest_does_not_say_that_it_stood_still_when_it_was_sent(
    incoming: bool,
) -> None:
    """Its destination lets it run, for whoever sent it may be dead by then."""
    words = argv(spec(), incoming=incoming)
    assert values(words, "-global") == ["migration.store-global-state=off"]
    assert "-S" not in words


def test_memory_in_huge_pages_has_the_name_of_any_other():
    given = parameters({"mem_path": "/dev/hugepages"})
    launch = Launch(
        accel="tcg",
        sockets={"monitor": 3, "console": 4, "channel": 5},
        sets={1: (6, "")},
        consolelog=1,
        ports={},
        data={},
        huge=2048,
    )
    words = arguments(spec(), given, launch)
    (backed,) = [v for v in values(words, "-object") if v.startswith("memory-backend")]
    assert "id=pc.ram," in backed
    assert "size=256M,prealloc=on" in backed
    assert "hugetlb=on,hugetlbsize=2048K" in backed
    assert values(words, "-machine")[0].endswith(",memory-backend=pc.ram")


def test_what_a_guest_has_on_usb():
    words = argv(spec(hvparams={"usb_devices": "keyboard,wacom-tablet"}))
    told = [json.loads(v) for v in values(words, "-device") if v[0] == "{"]
    usb = {one["id"]: one["driver"] for one in told if "usb" in one["id"]}
    assert usb == {
        "usb": "qemu-xhci",
        "on-usb0": "usb-kbd",
        "on-usb1": "usb-wacom-tablet",
    }


def test_how_disks_are_read_and_what_becomes_of_what_is_discarded():
    params = {"disk_aio": "native", "disk_discard": "ignore"}
    words = argv(spec(drive(0, DEVICE), hvparams=params))
    lower, upper = map(json.loads, values(words, "-blockdev"))
    assert lower["aio"] == "native"
    assert {lower["discard"], upper["discard"]} == {"ignore"}
    given, cached = parameters(params), blockdev.Data(lower, direct=False)
    with pytest.raises(Failed, match="disk_aio=native bypasses the node's cache"):
        blockdev.lower_node(drive(0, DEVICE), cached, "x", given)
