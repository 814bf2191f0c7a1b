# SPDX-License-Identifier: BSD-2-Clause
"""Configurations of every version: up as Ganeti's cfgupgrade, and down again."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ganetis_files import Ganeti, cannot_be_known, differences
from moorage.config_data import (
    KNOWN,
    NEWEST,
    Version,
    downgrade,
    known_version,
    read,
    upgrade,
)
from moorage.errors import BadInput

pytestmark = pytest.mark.oracle
RECORDED = [str(one) for one in KNOWN if one < Version(3, 0)]


def raised(data: bytes, to: Version = NEWEST) -> Any:
    numbers = count()
    document, _ = upgrade(read(data), to, lambda: f"new-{next(numbers)}")
    return document


def with_our_uuids(ours: Any, theirs: Any) -> Any:
    """Return Ganeti's document with our uuids for the disks to which it gave some."""
    text = json.dumps(theirs)
    for uuid, instance in ours["instances"].items():
        for mine, its in zip(
            instance["disks"], theirs["instances"][uuid]["disks"], strict=True
        ):
            pairs = [(ours["disks"][mine], theirs["disks"][its])]
            pairs += zip(*(one.get("children", []) for one in pairs[0]), strict=True)
            for new, old in pairs:
                if str(new.get("uuid")).startswith("new-"):
                    text = text.replace(old["uuid"], new["uuid"])
    return json.loads(text)


@pytest.mark.requirement("S3-16")
@pytest.mark.parametrize("version", RECORDED)
def test_up_as_ganetis_cfgupgrade(ganeti: Ganeti, tmp_path: Path, version: str) -> None:
    data = ganeti.recorded(version)
    theirs = ganeti.cfgupgrade(data, tmp_path / "up")
    ours = raised(data, Version(3, 0))
    assert list(differences(ours, with_our_uuids(ours, theirs))) == []


@pytest.mark.parametrize("version", RECORDED)
def test_down_again_it_is_what_it_was(ganeti: Ganeti, version: str) -> None:
    data = ganeti.recorded(version)
    found, _ = downgrade(raised(data), known_version(version))
    places = differences(found, json.loads(data))
    assert [one for one in places if not cannot_be_known(one, version)] == []


def test_one_step_down_as_ganetis(ganeti: Ganeti, tmp_path: Path) -> None:
    whole = raised(ganeti.recorded("2.16"), Version(3, 0))
    data = json.dumps(whole).encode()
    theirs = ganeti.cfgupgrade(data, tmp_path / "down", "--downgrade")
    assert downgrade(whole, Version(2, 16)) == (theirs, [])


def test_what_is_known_nowhere_stays(ganeti: Ganeti) -> None:
    document = json.loads(ganeti.recorded("2.9"))
    document["cluster"]["from_the_future"] = {"a": [1]}
    instance = next(iter(document["instances"].values()))
    instance["mine"] = instance["disks"][0]["mine"] = "x"
    found, _ = downgrade(raised(json.dumps(document).encode()), Version(2, 9))
    assert found["cluster"]["from_the_future"] == {"a": [1]}
    again = next(one for one in found["instances"].values() if "mine" in one)
    assert again["disks"][0]["mine"] == "x"


@pytest.fixture
def newest(ganeti: Ganeti) -> Any:
    return raised(ganeti.recorded("2.16"))


def instance_of(document: Any) -> Any:
    return next(iter(document["instances"].values()))


@pytest.mark.requirement("S3-19")
def test_several_templates_are_refused_by_name(newest: Any) -> None:
    """Nothing is changed; instance, disks and what to do are named."""
    instance = instance_of(newest)
    newest["disks"]["second"] = {
        "dev_type": "ext",
        "logical_id": ["san", "v"],
        "size": 1,
    }
    instance["disks"].append("second")
    before = json.dumps(newest)
    with pytest.raises(BadInput) as refused:
        downgrade(newest, Version(2, 13))
    told = refused.value.message
    assert instance["name"] in told
    assert "second (ext)" in told
    assert "detached" in told
    assert json.dumps(newest) == before
    assert downgrade(newest, Version(2, 14))


@pytest.mark.requirement("S3-17")
def test_disks_of_nobody_are_named_and_dropped(newest: Any) -> None:
    disk = {"dev_type": "ext", "logical_id": ["san", "v"], "size": 1, "name": "data1"}
    newest["disks"]["lonely"] = disk | {"nodes": []}
    found, lost = downgrade(newest, Version(2, 12))
    assert found["disks"]["lonely"]["name"] == "data1"
    found, lost = downgrade(newest, Version(2, 11))
    assert lost == ["disk data1"]
    assert "disks" not in found
    for uuid, instance in found["instances"].items():
        kept = [newest["disks"][one] for one in newest["instances"][uuid]["disks"]]
        for inside, disk in zip(instance["disks"], kept, strict=True):
            assert inside["uuid"] == disk["uuid"]
            assert inside["size"] == disk["size"]
            assert inside["logical_id"] == disk["logical_id"]


@pytest.mark.requirement("S3-18")
def test_an_instance_gets_the_template_of_its_disks(newest: Any) -> None:
    diskless = instance_of(newest)
    diskless["disks"] = []
    found, _ = downgrade(newest, Version(2, 13))
    kinds = {one["name"]: one["disk_template"] for one in found["instances"].values()}
    assert sorted(kinds.values()) == ["diskless", "drbd", "plain"]
    assert kinds[diskless["name"]] == "diskless"


def test_what_is_forthcoming_goes(newest: Any) -> None:
    one, other, *_ = newest["instances"].values()
    one["forthcoming"] = True
    newest["disks"][other["disks"][0]]["forthcoming"] = True
    found, lost = downgrade(newest, Version(2, 13))
    assert lost == [
        f"instance {one['name']} is forthcoming",
        f"disk {other['disks'][0]} is forthcoming",
    ]
    assert found["instances"][other["uuid"]]["disks"] == []


@pytest.mark.parametrize(
    ("version", "place", "value", "word"),
    [
        ("2.16", "cluster/ssh_key_type", "rsa", "of type rsa"),
        ("2.10", "cluster/ndparams/ssh_port", 2222, "port 2222"),
    ],
)
def test_what_nodes_need_is_refused(
    newest: Any, version: str, place: str, value: Any, word: str
) -> None:
    *path, last = place.split("/")
    part = newest
    for name in path:
        part = part[name]
    part[last] = value
    with pytest.raises(BadInput, match=word):
        downgrade(newest, known_version(version))


ROWS = [
    ("3.0", "cluster/hvparams/xen-pvm/xen_cmd", False),
    ("2.16", "cluster/ssh_key_type", True),
    ("2.16", "cluster/ssh_key_bits", True),
    ("2.14", "cluster/data_collectors/xen-cpu-avg-load", True),
    ("2.12", "cluster/diskparams/ext/access", True),
    ("2.12", "cluster/data_collectors", True),
    ("2.12", "filters", True),
    ("2.12", "cluster/hvparams/lxc/num_ttys", True),
    ("2.11", "cluster/hvparams/kvm/disk_aio", True),
    ("2.11", "cluster/hvparams/kvm/migration_caps", True),
    ("2.11", "cluster/hvparams/kvm/virtio_net_queues", True),
    ("2.11", "cluster/ndparams/cpu_speed", True),
    ("2.11", "cluster/osparams_private_cluster", True),
    ("2.11", "cluster/instance_communication_network", True),
    ("2.11", "cluster/install_image", True),
    ("2.11", "cluster/zeroing_image", True),
    ("2.11", "cluster/compression_tools", True),
    ("2.11", "cluster/max_tracked_jobs", True),
    ("2.11", "disks", True),
    ("2.10", "cluster/default_iallocator_params", True),
    ("2.10", "cluster/candidate_certs", True),
    ("2.10", "cluster/gluster_storage_dir", True),
    ("2.10", "cluster/max_running_jobs", True),
    ("2.10", "cluster/ndparams/ssh_port", True),
    ("2.9", "cluster/ndparams/ovs", True),
    ("2.9", "cluster/nicparams/default/vlan", True),
    ("2.9", "cluster/hvparams/xen-hvm/cpuid", True),
    ("2.9", "cluster/hvparams/xen-pvm/soundhw", True),
    ("2.8", "cluster/hvparams/xen-pvm/vif_script", True),
    ("2.8", "nodes/node1.example.com", False),
    ("2.8", "instances/instance1.example.com", False),
    ("2.7", "cluster/ipolicy/minmax", True),
    ("2.7", "cluster/ipolicy/min", False),
    ("2.7", "cluster/enabled_disk_templates", True),
]


@pytest.mark.parametrize(("version", "place", "gone"), ROWS)
def test_what_a_version_does_not_know_is_not_in_it(
    newest: Any, version: str, place: str, *, gone: bool
) -> None:
    at = KNOWN.index(known_version(version))

    def has(document: Any) -> bool:
        part = document
        for name in place.split("/"):
            if name not in part:
                return False
            part = part[name]
        return True

    above, _ = downgrade(newest, KNOWN[at + 1])
    below, _ = downgrade(newest, KNOWN[at])
    assert (has(above), has(below)) == (gone, not gone)
