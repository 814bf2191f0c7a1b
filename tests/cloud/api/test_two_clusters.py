# SPDX-License-Identifier: BSD-2-Clause
"""``openstack`` in front of two clusters whose masters, doors and scripts are real."""

from pathlib import Path

import pytest
from openstack_clients import Run
from site_of_people import Site

from moorage_cloud.models import Volume

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # clients warn of what will be otherwise
    pytest.mark.requirement("S1-11", "S1-12", "S1-20", "S1-21", "S1-44"),
]


@pytest.mark.slow
def test_a_volume_goes_from_one_cluster_to_another_with_its_bytes(
    harbour: Site, openstack: Run
):
    towns, images = harbour.docks.towns, harbour.docks.towns.san.images
    made = openstack("volume create --size 1 data")
    assert list(images.iterdir()) == []

    openstack("server add volume a1 data")
    harbour.docks.settle()
    assert openstack("volume show data")["status"] == "in-use"
    file = images / Volume.objects.get().backend_volume_uuid
    _write(file, b"precious")

    openstack("server remove volume a1 data", tells=False)
    harbour.docks.settle()
    assert towns.towns["a"].disks() == set()
    assert "remove" not in towns.san.scripts(file.name)
    openstack("server add volume b1 data")
    harbour.docks.settle()
    (place,) = openstack("volume show data")["attachments"]
    assert place["server_id"] == harbour.server("b1")
    assert file.read_bytes()[:8] == b"precious"

    openstack("volume set --size 2 data", tells=False)
    harbour.docks.settle()
    assert openstack("volume show data")["size"] == 2

    openstack("server remove volume b1 data", tells=False)
    harbour.docks.settle()
    openstack(f"volume delete {made['id']}", tells=False)
    harbour.docks.settle()
    assert openstack("volume list") == []
    assert list(images.iterdir()) == []


def _write(file: Path, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.write(data)
