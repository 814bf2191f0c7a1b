# SPDX-License-Identifier: BSD-2-Clause
"""The builder of the tiny guest: archives and modules, without a kernel."""

import subprocess

import pytest

from moorage.node.hypervisors.kvm import cpio
from moorage.testing.guest_image.__main__ import main
from moorage.testing.guest_image.build import initramfs_entries
from moorage.testing.guest_image.modules import depends, load_order, modules_in

LINK, TRAILER = ("c", 0o120777, b"a/b"), ("TRAILER!!!", 0, b"")


def unpacked(archive):
    """Yield name, mode and data of each entry, as the kernel's manual tells to."""
    while archive:
        assert archive[:6] == b"070701"
        fields = [int(archive[6 + 8 * n : 14 + 8 * n], 16) for n in range(13)]
        mode, size, named = fields[1], fields[6], fields[11]
        name, after = archive[110 : 110 + named], -(-(110 + named) // 4) * 4
        assert name[-1:] == b"\0"
        yield name[:-1].decode(), mode, archive[after : after + size]
        archive = archive[after + -(-size // 4) * 4 :]


def test_an_archive_holds_what_was_put_in():
    entries = [cpio.directory("a"), cpio.plain("a/b", b"text"), cpio.link("c", "a/b")]
    found = list(unpacked(cpio.archive(entries)))
    assert found == [("a", 0o040755, b""), ("a/b", 0o100644, b"text"), LINK, TRAILER]


def test_every_part_of_an_archive_is_aligned():
    assert len(cpio.archive([cpio.plain("abc", b"x")])) % 4 == 0


def test_modules_load_after_those_they_depend_on():
    needs = {"blk": ["virtio"], "pci": ["ring", "virtio"], "virtio": [], "ring": []}
    order = load_order(["blk", "pci", "built_in"], needs.get)
    assert order == ["virtio", "blk", "ring", "pci"]


def test_a_module_says_what_it_depends_on():
    assert depends(b"license=GPL\0depends=a-b,c\0name=x\0") == ["a_b", "c"]
    assert depends(b"\0depends=\0") == []
    assert depends(b"") == []


def test_modules_are_found_by_their_name(tmp_path):
    file = tmp_path / "lib/modules/6.1/kernel/drivers/virtio-rng.ko"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    assert modules_in(tmp_path) == {"virtio_rng": file}


def test_the_guest_loads_its_modules_in_the_order_given():
    entries = initramfs_entries(b"busybox", {"b": b"2", "a": b"1"})
    by_name = {entry.name: entry for entry in entries}
    assert by_name["m/order"].data == b"b\na\n"
    assert by_name["m/a.ko"].data == b"1"
    assert by_name["init"].data.startswith(b"#!/bin/busybox sh\n")


@pytest.mark.parametrize("script", ["init", "bin/channel", "bin/find-system"])
def test_the_scripts_are_shell(script):
    entries = {entry.name: entry for entry in initramfs_entries(b"", {})}
    subprocess.run(["sh", "-n"], input=entries[script].data, check=True)


def test_bad_usage_is_one_line(capsys):
    with pytest.raises(SystemExit):
        main(["image"])
    assert "usage:" in capsys.readouterr().err


def test_a_builder_without_a_place_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["build", str(tmp_path / "guest")]) == 1
    assert "apt-cache is missing" in capsys.readouterr().err
