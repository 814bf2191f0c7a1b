# SPDX-License-Identifier: BSD-2-Clause
"""The cluster's configuration, written for Ganeti, and read by Ganeti's own library."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ganetis_files import Ganeti
from moorage.config_data import (
    KNOWN,
    NEWEST,
    Exported,
    Version,
    exported,
    read,
)
from moorage.errors import BadInput
from moorage.model import Disk, successor
from moorage.model.apply import apply
from moorage.model.change import Change
from moorage.model.master_address import MasterAddress
from moorage.testing.cluster import ClusterBuilder, SimCluster

ADDRESS = MasterAddress("198.51.100.9", "eth0", 24)
MIRRORED = {"disk_template": "drbd", "pnode": "node1", "snode": "node2"}
MADE: list[tuple[str, dict[str, Any]]] = [
    ("OP_CLUSTER_SET_PARAMS", {"nicparams": {"link": "br0", "filter": "mac"}}),
    (
        "OP_NETWORK_ADD",
        {"network_name": "lan", "network": "192.0.2.0/24", "gateway": "192.0.2.1"},
    ),
    (
        "OP_NETWORK_CONNECT",
        {
            "network_name": "lan",
            "group_name": "default",
            "network_mode": "bridged",
            "network_link": "br0",
            "network_filter": "ip",
        },
    ),
    (
        "OP_INSTANCE_CREATE",
        {
            "instance_name": "db",
            "disks": [{"size": 64}],
            "nics": [{"network": "lan", "ip": "192.0.2.7", "filter": "ip"}],
            "hvparams": {"vnc_bind_address": "127.0.0.1"},
            **MIRRORED,
        },
    ),
    ("OP_TAGS_SET", {"kind": "disk", "name": "data1", "tags": ["mine"]}),
    ("OP_CLUSTER_SET_PARAMS", {"hvparams": {"kvm": {"accel": "tcg"}}}),
    (
        "OP_CLUSTER_SET_PARAMS",
        {"diskparams": {"drbd": {"total_iops_sec": 5, "disk-barriers": "bf"}}},
    ),
    ("OP_DISK_SET_PARAMS", {"disk": "data1", "params": {"total_bytes_sec": "7"}}),
]


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder(3).disk("data1").instance("web1", tags=("b", "a"))
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    for op_id, fields in MADE:
        await cluster.run(op_id, **fields)
    yield cluster
    await cluster.stop()


def written(sim: SimCluster, version: Version = NEWEST) -> Exported:
    return exported(sim.config, version, ADDRESS)


@pytest.mark.oracle
async def test_ganetis_library_reads_it_and_has_no_complaint(
    sim: SimCluster, ganeti: Ganeti, tmp_path: Path
) -> None:
    """And its cfgupgrade brings it down to what we write for the version below."""
    file = tmp_path / "config.data"
    file.write_text(json.dumps(written(sim, Version(3, 0)).document))
    assert ganeti.verify(file) == [[]]
    document = json.loads(file.read_text())
    document["cluster"] |= {"ssh_key_type": "dsa", "ssh_key_bits": 1024}
    data = json.dumps(document).encode()  # with other keys it takes no step down
    lower = ganeti.cfgupgrade(data, tmp_path / "down", "--downgrade")
    assert lower == written(sim, Version(2, 16)).document
    broken = json.loads(file.read_text())
    broken["instances"][next(iter(broken["instances"]))]["primary_node"] = "mars"
    file.write_text(json.dumps(broken))
    assert "invalid primary node 'mars'" in " ".join(*ganeti.verify(file))


@pytest.mark.parametrize("version", KNOWN, ids=str)
async def test_each_version_can_be_read_again(
    sim: SimCluster, version: Version
) -> None:
    document = written(sim, version).document
    assert read(json.dumps(document).encode()) == document
    assert document["version"] == version.number
    assert {one["name"] for one in document["instances"].values()} == {"web1", "db"}


async def test_what_counts_is_written(sim: SimCluster) -> None:
    document = written(sim).document
    (network,) = document["networks"].values()
    assert network["reservations"] == "0" * 7 + "1" + "0" * 248
    assert network["ext_reservations"] == "11" + "0" * 253 + "1"
    db = sim.config.instance("db")
    disk = document["disks"][db.disks[0]]
    assert disk["iv_name"] == "disk/0"
    assert [child["dev_type"] for child in disk["children"]] == ["plain", "plain"]
    cluster = document["cluster"]
    used = {disk["logical_id"][2], document["instances"][db.uuid]["network_port"]}
    assert cluster["highest_used_port"] == max(used)
    assert not used & set(cluster["tcpudp_port_pool"])
    assert (cluster["master_ip"], cluster["master_netdev"]) == ("198.51.100.9", "eth0")
    node = document["nodes"][db.primary_node]
    assert node.keys().isdisjoint({"pins", "port", "master_certs"})


async def test_what_ganeti_has_no_place_for_is_counted_and_kept(
    sim: SimCluster,
) -> None:
    made = written(sim)
    assert "the tags of 1 disk" in made.left
    assert "the hypervisor parameter accel, set in 1 place" in made.left
    assert "the limits of what guests may ask of disks, set in 2 places" in made.left
    assert "the filters of network cards, set in 3 places" in made.left
    cards = [made.document["cluster"]["nicparams"]["default"]]
    (db,) = (one for one in made.document["instances"].values() if one["nics"])
    cards += [nic["nicparams"] for nic in db["nics"]]
    assert not any("filter" in one for one in cards)
    data1 = sim.config.disk("data1")
    assert made.beside["disks"][data1.uuid]["tags"] == ("mine",)
    assert made.beside["hvparams"] == {
        sim.config.cluster.uuid: {"kvm": {"accel": "tcg"}}
    }
    assert "accel" not in json.dumps(made.document)


async def test_a_disk_that_must_not_be_used_is_named(sim: SimCluster) -> None:
    disk = sim.config.get(Disk, "data1")
    ill = successor(disk, 2.0, quarantine="two writers")
    config = apply(sim.config, Change((ill,)))
    assert "the quarantine of 1 disk (data1)" in exported(config, NEWEST, ADDRESS).left


async def test_the_master_needs_an_address_of_its_own(sim: SimCluster) -> None:
    with pytest.raises(BadInput, match="there is none on record"):
        exported(sim.config)
    node = sim.config.node("node2")
    with pytest.raises(BadInput, match="is node node2's"):
        exported(sim.config, NEWEST, MasterAddress(node.primary_ip, "eth0", 24))


async def test_a_card_without_a_link_is_refused(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path / "sim", ClusterBuilder(1))
    with pytest.raises(BadInput, match="have a link"):
        exported(cluster.config, NEWEST, ADDRESS)
    await cluster.stop()
