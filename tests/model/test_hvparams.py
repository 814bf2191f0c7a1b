# SPDX-License-Identifier: BSD-2-Clause
"""Hypervisor parameters: slips are refused, Ganeti's others are passed over."""

from contextlib import suppress

import pytest

from moorage.consistency.parameters import STARTED_WITH, misfit
from moorage.errors import BadInput
from moorage.model.hvignored import IGNORED
from moorage.model.hvparams import KNOWN, check, filled, warnings


def test_a_slip_is_refused_with_what_was_meant():
    with pytest.raises(
        BadInput, match="no hypervisor parameter 'kernel_pat'"
    ) as caught:
        check("kvm", {"kernel_pat": "/boot/vmlinuz"})
    assert caught.value.hint == "did you mean kernel_path?"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"boot_order": "tape"}, "boot_order 'tape' is none of"),
        ({"migration_port": "many"}, "hypervisor parameters of kvm"),
        ({"machine_version": "isapc"}, "not a version of pc or q35"),
    ],
)
def test_values_that_kvm_cannot_honour_are_refused(given, words):
    with pytest.raises(BadInput, match=words):
        check("kvm", given)


@pytest.mark.parametrize(
    "given", [{"vnc_bind_address": "127.0.0.1"}, {"kernel_path": "default"}, {}]
)
def test_what_ganeti_knows_is_accepted(given):
    check("kvm", given)


def test_other_hypervisors_take_anything():
    check("fake", {"colour": "blue"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"security_model": "root"}, "is none of none, pool, user"),
        ({"security_domain": "root --"}, "is no user's name"),
        ({"use_chroot": "true"}, "use_chroot=true cannot be honoured"),
        ({"use_chroot": True}, "use_chroot=True cannot be honoured"),
        ({"vnc_password_file": "p"}, "vnc_password_file is an absolute path"),
        ({"vnc_bind_address": "eth0"}, "an IP address of the node, or a path"),
        ({"vga": "qxl"}, "vga 'qxl' is none of cirrus, none, std, virtio, vmware"),
        ({"keymap": "../x"}, "is none of QEMU's"),
        ({"cdrom_disk_type": "sd"}, "is none of ide, ioemu, scsi, scsi-cd"),
        ({"spice_password_file": "/p"}, "spice_password_file=/p cannot be honoured"),
        ({"spice_use_tls": "yes"}, "spice_use_tls=yes cannot be honoured"),
        ({"migration_mode": "non-live"}, "guests migrate live"),
        ({"disk_type": "scsi-block"}, "disk_type .scsi-block. is none of ide"),
        ({"scsi_controller_type": "pvscsi"}, "is none of lsi, megasas"),
        ({"nic_type": "ne2k_isa"}, "is none of e1000"),
        ({"virtio_net_queues": 9}, "virtio_net_queues is 1 to 8"),
        ({"cdrom_image_path": "http://x/iso"}, "an absolute path"),
        ({"kvm_extra": "-foo '"}, "shell syntax"),
        ({"migration_port": -1}, "migration_port is 1 to 65535"),
        ({"migration_port": "65536"}, "migration_port is 1 to 65535"),
        ({"migration_bandwidth": 0}, "migration_bandwidth is 1 to"),
        ({"kernel_args": "ro\0x"}, "control character"),
        ({"vnc_bind_address": "1\n2"}, "control character"),
        ({"kernel_path": "boot/vmlinuz"}, "absolute path"),
        ({"machine_version": "q35,firmware=/etc/shadow"}, "not a version of pc or q35"),
        ({"cpu_type": "host,x="}, "not a model of QEMU's"),
        ({"accel": "tcg,x=/etc/shadow"}, "is none of auto, kvm, tcg"),
        ({"kvm_flag": "perhaps"}, "is none of disabled, enabled"),
        ({"reboot_behavior": "explode"}, "is none of exit, reboot"),
        ({"serial_speed": 300}, "is none of"),
        ({"cpu_mask": "a-b"}, "cpu_mask 'a-b' is not all, or numbers"),
        ({"cpu_mask": "0:3-1"}, "'3-1' runs backwards"),
        ({"cpu_mask": "1-2-3"}, "'1-2-3' is neither"),
        ({"cpu_threads": 256}, "cpu_threads is 0 to 255"),
        ({"cpu_mask": "0:"}, "'' is neither"),
        ({"soundhw": "ac97"}, "there is no sound card"),
        ({"usb_devices": "keyboard,host:1.2"}, "usb_devices 'host:1.2' is none of"),
        ({"usb_devices": ",".join(["mouse"] * 9)}, "names at most 8 devices"),
        ({"mem_path": "hugepages"}, "mem_path is an absolute path"),
        ({"disk_aio": "posix"}, "disk_aio 'posix' is none of io_uring, native"),
        ({"disk_discard": "zero"}, "disk_discard 'zero' is none of"),
        (
            {"disk_aio": "native", "disk_cache": "writeback"},
            "disk_aio=native bypasses the node's cache, and disk_cache=writeback",
        ),
        ({"cpu_mask": "9" * 5000}, "is neither"),
    ],
)
def test_what_somebody_would_rely_on_in_vain_is_refused(
    given: dict[str, object], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        check("kvm", given)


@pytest.mark.parametrize("name", sorted(IGNORED))
def test_each_parameter_without_effect_is_refused_where_it_is_set(name):
    """Its plain values are accepted, whatever their case; a kept one is warned of."""
    one = IGNORED[name]
    for value in ("", None, *one.plain, *map(str.upper, one.plain)):
        check("kvm", {name: value})
        assert list(warnings("kvm", {name: value})) == []
    word = "something"
    asked = {name: word}
    with pytest.raises(BadInput, match=f"{name}={word} cannot be honoured"):
        check("kvm", asked)
    (told,) = warnings("kvm", asked)
    assert told.startswith(f"hypervisor parameter {name}={word} has no effect: ")


@pytest.mark.parametrize(
    "given",
    [
        {"cpu_type": "Nehalem,+aes,-avx,x2apic=on"},
        {"machine_version": "pc-q35-7.2"},
        {"cpu_mask": "0-2,5:all:1", "cpu_sockets": 1, "cpu_cores": "3"},
        {"accel": "tcg"},
        {"kvm_flag": "disabled"},
        {"use_localtime": True, "reboot_behavior": "exit", "serial_speed": "115200"},
    ],
)
def test_what_kvm_can_do_is_accepted(given: dict[str, object]) -> None:
    check("kvm", given)
    assert list(warnings("kvm", given)) == []


def test_all_parameters_are_told_with_their_defaults() -> None:
    told = filled("kvm", {"kernel_path": "/k", "root_path": None})
    assert (told["kernel_path"], told["root_path"]) == ("/k", "")
    assert (told["disk_type"], told["serial_speed"]) == ("paravirtual", 38400)


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_accepted_is_no_complaint_afterwards(name):
    """``gnt-cluster verify`` says of no value that it is of a wrong type."""
    words = ("1", "0", "yes", "off", "true", "False", "", "7", "300", "none", "disk")
    for value in (*words, True, False, 7, 300, None):
        with suppress(BadInput):
            check("kvm", {name: value})
            given = {} if value is None else {name: value}
            assert misfit(given, STARTED_WITH) == ""
