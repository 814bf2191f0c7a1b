# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's configuration as objects, and out again as it came."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import json as fast_json
from msgspec import to_builtins
from msgspec.structs import replace

from ganetis_files import Ganeti, cannot_be_known, differences
from incoming import ADDRESS, came_in, comparable, fresh, here, names
from moorage.config_data import (
    KNOWN,
    NEWEST,
    Version,
    exported,
    read,
    upgrade,
)
from moorage.config_data.importing import expected, imported
from moorage.config_data.importing_plan import ERROR, findings
from moorage.daemons.bootstrap import first
from moorage.errors import BadInput
from moorage.model import Cluster, Disk, Instance, Node, NodeGroup
from moorage.model.apply import apply, assembled
from moorage.model.token import Token
from moorage.testing.cluster import ClusterBuilder, SimCluster
from support.damage import damage
from support.sampling import SEED

RECORDED = [one for one in KNOWN if one < Version(3, 0)]
OLDEST = Version(2, 11)
"""The first to which a configuration goes out."""


@pytest.mark.oracle
@pytest.mark.parametrize("version", RECORDED, ids=str)
def test_a_recorded_file_goes_out_as_it_came(ganeti: Ganeti, version: Version) -> None:
    """At 3.1, key by key: what older versions say otherwise is the steps' part."""
    document, _ = upgrade(read(ganeti.recorded(str(version))), NEWEST, fresh())
    found = came_in(document)
    assert found.wrong == []
    out = exported(found.config).document
    assert comparable(out) == comparable(document)
    assert len(list(found.config.all(Instance))) == len(document["instances"])


@pytest.mark.oracle
@pytest.mark.parametrize(
    "version", [one for one in RECORDED if one >= (2, 11)], ids=str
)
def test_it_goes_out_at_its_own_version(ganeti: Ganeti, version: Version) -> None:
    """But for what no upgrade keeps: see :mod:`tests.config_data.test_versions`."""
    data = ganeti.recorded(str(version))
    document, _ = upgrade(read(data), NEWEST, fresh())
    found = came_in(document)
    out = exported(found.config, version).document
    places = differences(comparable(out), comparable(json.loads(data)))
    assert [one for one in places if not cannot_be_known(one, str(version))] == []


@pytest.mark.oracle
@pytest.mark.parametrize("version", RECORDED, ids=str)
def test_it_becomes_the_whole_state_in_one_change(
    ganeti: Ganeti, version: Version
) -> None:
    document, _ = upgrade(read(ganeti.recorded(str(version))), NEWEST, fresh())
    target, found = here(*names(document)), came_in(document)
    after = apply(target, found.change(target))
    assert dict(after.objects) == dict(found.config.objects)
    for node in after.all(Node):  # the key and the address that it joined with
        assert node.primary_ip == target.node(node.name).primary_ip
        assert node.uuid in document["nodes"]


@pytest.mark.oracle
@pytest.mark.parametrize("version", RECORDED, ids=str)
def test_a_file_with_a_random_defect_comes_in_whole_or_not_at_all(
    ganeti: Ganeti, version: Version
) -> None:
    dice = Random(f"{SEED} {version} import")  # noqa: S311
    data = ganeti.recorded(str(version))
    known = names(upgrade(read(data), NEWEST, fresh())[0])
    for _ in range(40):
        document = json.loads(data)
        damage(document, dice)
        try:
            whole, _ = upgrade(read(json.dumps(document).encode()), NEWEST, fresh())
            found = imported(whole, here(*known), fresh(), {})
        except BadInput:
            continue
        if not any(
            one.level == ERROR for one in findings(found, here(*known), down=True)
        ):
            after = apply(here(*known), found.change(here(*known)))
            assert dict(after.objects) == dict(found.config.objects)
            exported(after)


@pytest.mark.oracle
def test_a_device_is_one_volume_by_all_its_names(ganeti: Ganeti) -> None:
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    names_of_it = {"/dev/disk/by-id/x": "/dev/dm-3", "/dev/mapper/x": "/dev/dm-3"}
    plain = [one for one in document["disks"].values() if one["dev_type"] == "plain"]
    for disk, path in zip(plain, names_of_it, strict=False):
        disk |= {"dev_type": "blockdev", "logical_id": ["manual", path]}
    target, found = here(*names(document)), came_in(document)

    def told(real: Any) -> list[str]:
        plan = findings(found, target, down=True, real=real)
        return [one.message for one in plan if "goes with either" in one.message]

    assert told(str) == []
    (message,) = told(lambda path: names_of_it.get(path, path))
    assert "its volume manual//dev/" in message


@pytest.mark.oracle
def test_guests_that_run_on_are_those_that_can_be_taken_over(ganeti: Ganeti) -> None:
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    for one in document["instances"].values():
        one["admin_state"], one["hypervisor"] = "up", "kvm"
    document["instances"][min(document["instances"])]["hypervisor"] = "xen-pvm"

    def told(*joined: str) -> dict[str, str]:
        target = here(*joined)
        found = imported(document, target, fresh(), {})
        seen = findings(found, target, down=False, run_on=True)
        return {
            one.object: one.message
            for one in seen
            if one.level == ERROR and one.message.startswith("it is marked up")
        }

    xen = document["instances"][min(document["instances"])]["name"]
    known = names(document)
    stay = told(*known)
    assert "guests of xen-pvm are not taken over" in stay.pop(f"instance {xen}")
    assert not stay
    away = told(known[0])
    assert any("no agent has joined" in why for why in away.values())


@pytest.mark.oracle
def test_two_disks_of_one_name(ganeti: Ganeti) -> None:
    """Where storage may know both by it, one has it; a provider is told it of both.

    So is Ganeti again. Elsewhere, both have it.
    """
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    first, second, *_ = document["disks"].values()
    first["name"] = second["name"] = "root"
    both = came_in(document).config.called(Disk, "root")
    assert {one.uuid for one in both} == {first["uuid"], second["uuid"]}
    for one in (first, second):
        one |= {"dev_type": "ext", "logical_id": ["rbd", one["uuid"]]}
        one |= {"params": {"provider": "rbd"}, "children": []}
    found = came_in(document)
    assert [of for of, _ in found.aside if "disk" in of] == [f"disk {second['uuid']}"]
    disks = [found.config.get(Disk, one["uuid"]) for one in (first, second)]
    assert [one.name for one in disks] == ["root", None]
    assert {one.known_as for one in disks} == {"root"}
    target = here(*names(document))
    out = exported(apply(target, found.change(target))).document["disks"]
    assert [out[one["uuid"]]["name"] for one in (first, second)] == ["root", "root"]


@pytest.mark.oracle
def test_no_word_of_ours_in_a_file_of_ganetis_means_anything(ganeti: Ganeti) -> None:
    """Ganeti's file is not root's: it turns nothing on, and goes out as it came."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    plain = came_in(document).config
    words: dict[str, Any] = {
        "cluster": {"ssconf": True, "job_retention": -7, "watcher_pause": 1e12},
        "nodes": {"pins": ["x"], "led_with": "y", "master_certs": ["z"]},
        "disks": {"epoch": 9, "by_uuid": True, "cname": "zzz", "adopted": True}
        | {"quarantine": "q", "identity": "i", "unproven": True, "tags": ["t"]},
        "networks": {"reserved": ["192.0.2.1"], "foreign": {"/x": [1, 2]}},
        "instances": {"foreign": {"/name": ["a", "b"]}},
        "nodegroups": {"foreign": {"/name": ["a", "b"]}},
    }
    for place, more in words.items():
        parts = document[place].values() if place != "cluster" else [document[place]]
        for part in parts:
            part.update(more)
            for child in part.get("children") or ():
                child.update(more)
    found = came_in(document)
    assert not found.wrong
    bare = {one.uuid: replace(one, foreign=None) for one in plain.all(Disk)}
    assert {one.uuid: replace(one, foreign=None) for one in found.config.all(Disk)} == (
        bare
    )
    for kind in (Node, NodeGroup, Instance):
        pairs = zip(found.config.named(kind), plain.named(kind), strict=True)
        assert all(
            replace(one, foreign=None) == replace(other, foreign=None)
            for one, other in pairs
        )
    target = here(*names(document)).cluster
    made = found.config.cluster
    assert (made.ssconf, made.job_retention) == (target.ssconf, target.job_retention)
    assert made.watcher_pause is None
    out = exported(found.config, NEWEST).document
    assert [*differences(comparable(out), comparable(document))] == []


MADE: list[tuple[str, dict[str, Any]]] = [
    ("OP_CLUSTER_SET_PARAMS", {"nicparams": {"link": "br0"}}),
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
        },
    ),
    (
        "OP_INSTANCE_CREATE",
        {
            "instance_name": "db",
            "disks": [{"size": 64, "name": "root"}],
            "nics": [{"network": "lan", "ip": "192.0.2.7"}],
            "hvparams": {"vnc_bind_address": "127.0.0.1", "accel": "tcg"},
            "disk_template": "drbd",
            "pnode": "node1",
            "snode": "node2",
        },
    ),
    *(
        (
            "OP_INSTANCE_CREATE",
            {
                "instance_name": name,
                "disks": [{"size": 8, "name": "root", "provider": "usersan"}],
                "disk_template": "ext",
                "pnode": "node1",
                "nics": [],
            },
        )
        for name in ("mail", "news")
    ),
    (
        "OP_STORAGE_POOL_ADD",
        {"pool_name": "fast", "disk_template": "ext", "provider": "san"},
    ),
    ("OP_STORAGE_POOL_CONNECT", {"pool_name": "fast", "groups": ["default"]}),
    ("OP_DISK_ADD", {"name": "spare", "size": 8, "pool": "fast"}),
    ("OP_DISK_ADD", {"name": "alone", "size": 8, "disk_template": "sharedfile"}),
    ("OP_TAGS_SET", {"kind": "disk", "name": "data1", "tags": ["mine"]}),
    ("OP_CLUSTER_SET_PARAMS", {"hvparams": {"kvm": {"accel": "tcg"}}}),
]


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder(3).disk("data1").instance("web1", tags=("b", "a"))
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    for op_id, fields in MADE:
        await cluster.run(op_id, **fields)
    yield cluster
    await cluster.stop()


@pytest.mark.requirement("S3-33")
@pytest.mark.oracle
@pytest.mark.parametrize("version", RECORDED, ids=str)
def test_the_template_comes_in_with_the_disks(ganeti: Ganeti, version: Version) -> None:
    """Of the row, the upgrade of each version: no record says it of the instance."""
    old = json.loads(ganeti.recorded(str(version)))
    document, _ = upgrade(read(json.dumps(old).encode()), NEWEST, fresh())
    config = came_in(document).config
    olds = old["instances"].values()
    templates = {one["name"]: one.get("disk_template") for one in olds}
    for instance in config.all(Instance):
        assert "disk_template" not in to_builtins(instance)
        told = templates[instance.name]
        found = {disk.dev_type for disk in config.disks_of(instance)}
        assert told is None or found <= {told}


@pytest.mark.requirement("S3-33")
@pytest.mark.oracle
async def test_upgrade_bootstrap_create_and_modify_give_the_template_to_the_disk(
    sim: SimCluster, ganeti: Ganeti
) -> None:
    """The whole row: what each of the four makes has disks as objects of their own."""
    document, _ = upgrade(read(ganeti.recorded("2.7")), NEWEST, fresh())
    brought_up = came_in(document).config
    assert {one.dev_type for one in brought_up.all(Disk)} == {"drbd", "plain"}
    token = Token(address="192.0.2.1", port=1811, fingerprint="f", secret="")
    made, _ = assembled(first("new", {}, token).put)
    new = exported(made, NEWEST, ADDRESS).document
    assert (new["disks"], new["instances"]) == ({}, {})
    assert sim.config.instance("db").disks
    await sim.run(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="mail",
        disks=[["add", -1, {"size": 8, "dev_type": "plain"}]],
    )
    mail = sim.config.instance("mail")
    for one in (mail, sim.config.instance("db"), *brought_up.all(Instance)):
        assert "disk_template" not in to_builtins(one)
    found = [disk.dev_type for disk in sim.config.disks_of(mail)]
    assert found == ["ext", "plain"]


async def test_what_is_stored_here_goes_out_and_comes_in_equal(sim: SimCluster) -> None:
    made = exported(sim.config, NEWEST, ADDRESS)
    beside = fast_json.decode(fast_json.encode(made.beside))
    target = here("node1", "node2", "node3")
    found = imported(made.document, target, fresh(), beside)
    assert found.wrong == []
    after = apply(target, found.change(target))
    for before in sim.config.objects.values():
        if isinstance(before, Node | Cluster):
            continue
        own = after.objects[before.uuid]
        assert replace(own, foreign=None) == before
    again = exported(after, NEWEST, ADDRESS)
    assert comparable(again.document) == comparable(made.document)
    assert again.beside == made.beside


@pytest.mark.oracle
def test_a_file_without_nodes_is_no_clusters(ganeti: Ganeti) -> None:
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    with pytest.raises(BadInput, match="it has no nodes"):
        expected(document | {"nodes": {}})
