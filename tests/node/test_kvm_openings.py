# SPDX-License-Identifier: BSD-2-Clause
"""What the agent opens for QEMU: it names descriptors, and no path."""

import json
import os
import socket
from itertools import count
from pathlib import Path

import pytest

from moorage.errors import Failed
from moorage.node.hypervisors.base import Drive
from moorage.node.hypervisors.kvm import openings
from moorage.node.machine.images import Images
from moorage.storage import Where
from moorage.units import Mib


@pytest.fixture
def images(tmp_path: Path) -> Images:
    listed = tmp_path / "list"
    listed.write_text(f"{tmp_path}\n")
    return Images("node1", listed)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    found = tmp_path / "image"
    found.write_bytes(b"data")
    return found


def drive(mode: str = "rw", **where) -> Drive:
    return Drive(disk="d1", slot=0, size=Mib(4), where=Where(**where), mode=mode)


def opened(one: Drive, images: Images | None, prefix: str = ""):
    return openings.opened(one, images, count(7), prefix)


@pytest.mark.parametrize(("mode", "flags"), [("rw", os.O_RDWR), ("ro", os.O_RDONLY)])
def test_an_image_is_a_descriptor_of_the_right_kind(images, image, mode, flags):
    found = opened(drive(mode, path=str(image)), images)
    assert found.data.node == {"driver": "file", "filename": "/dev/fdset/7"}
    assert os.pread(found.sets[7], 4, 0) == b"data"
    assert os.get_blocking(found.sets[7])
    with open(f"/proc/self/fdinfo/{found.sets[7]}") as told:  # noqa: PTH123
        assert int(told.read().split("flags:")[1].split()[0], 8) & 3 == flags
    found.close()


def test_a_link_in_an_images_place_is_no_image(images, image, tmp_path):
    (tmp_path / "link").symlink_to(image)
    with pytest.raises(Failed, match="does not open"):
        opened(drive(path=str(tmp_path / "link")), images)


def test_without_the_nodes_images_there_is_none(image):
    with pytest.raises(Failed, match="no image file can"):
        opened(drive(path=str(image)), None)


def test_files_and_sockets_are_found_at_any_depth(image, tmp_path):
    path = tmp_path / ("s" * 120) / "sock"
    path.parent.mkdir()
    at = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{at}/sock")
        server.listen()
        nbd = {"driver": "nbd", "server": {"type": "unix", "path": str(path)}}
        deep = {"driver": "copy", "file": nbd, "b": {"driver": "file"}}
        deep["b"]["filename"] = str(image)
        uri = f"json:{json.dumps(deep)}"
        found = opened(drive(uris={"kvm": uri}), None, "connection")
        ((name, descriptor),) = found.connections.items()
        assert name == f"connection{descriptor}"
        assert found.data.node["file"]["server"] == {"type": "fd", "str": name}
        assert found.data.node["b"]["filename"] == "/dev/fdset/7"
        server.accept()[0].close()
        found.close()
    os.close(at)


def test_what_is_missing_is_said_and_nothing_stays_open(image, tmp_path):
    gone = {"driver": "nbd", "server": {"type": "unix", "path": f"{tmp_path}/none"}}
    deep = {"driver": "copy", "file": {"driver": "file", "filename": str(image)}}
    uri = f"json:{json.dumps(deep | {'target': gone})}"
    before = list(Path("/proc/self/fd").iterdir())
    with pytest.raises(Failed, match="none cannot be opened: No such file"):
        opened(drive(uris={"kvm": uri}), None)
    assert list(Path("/proc/self/fd").iterdir()) == before


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_kernel_can_be_read_by_any_user_through_its_descriptor(tmp_path, mode):
    path = tmp_path / "vmlinuz"
    path.write_bytes(b"kernel")
    path.chmod(mode)
    found = openings.kernel(str(path), tmp_path)
    assert os.fstat(found).st_mode & 0o004
    assert Path(f"/proc/self/fd/{found}").read_bytes() == b"kernel"
    os.close(found)
    assert [one.name for one in tmp_path.iterdir()] == ["vmlinuz"]
    with pytest.raises(Failed, match="cannot be opened"):
        openings.kernel(str(tmp_path / "none"), tmp_path)


def test_a_client_of_ceph_gets_its_configuration_without_a_path(tmp_path):
    conf = tmp_path / "a:b.conf"
    conf.write_text("[global]\nmon host = 192.0.2.1\n")
    conf.chmod(0o600)
    escaped = str(conf).replace(":", "\\:")
    found = opened(drive(uris={"kvm": f"rbd:guests/d1:conf={escaped}:id=moor"}), None)
    (descriptor,) = found.texts
    node = found.data.node
    assert (node["pool"], node["image"], node["user"]) == ("guests", "d1", "moor")
    assert node["conf"] == f"/proc/self/fd/{descriptor}"
    assert Path(node["conf"]).read_text().startswith(conf.read_text())
    assert os.fstat(descriptor).st_mode & 0o777 == 0o444
    there = found.data.renamed(node["conf"], "/proc/self/fd/99").node
    assert there == node | {"conf": "/proc/self/fd/99"}
    found.close()


def test_a_configuration_of_ceph_that_is_not_there_is_named(tmp_path):
    uri = f"rbd:guests/d1:conf={tmp_path}/none"
    with pytest.raises(Failed, match="none cannot be read: No such file"):
        opened(drive(uris={"kvm": uri}), None)
