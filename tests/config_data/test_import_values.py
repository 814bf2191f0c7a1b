# SPDX-License-Identifier: BSD-2-Clause
"""Values of a file of Ganeti's that none could set here: aside, or in the way."""

from typing import Any

import pytest

from ganetis_files import Ganeti, differences
from incoming import came_in, comparable, fresh, here, names
from moorage.config_data import (
    NEWEST,
    exported,
    read,
    upgrade,
)
from moorage.config_data.importing import imported
from moorage.config_data.importing_plan import NOTICE, findings
from moorage.model import Instance, Node, successor
from moorage.model.apply import apply
from moorage.model.change import Change
from moorage.model.uidpool import STANDARD


@pytest.mark.oracle
def test_presets_without_effect_are_told_and_go_out_again(ganeti: Ganeti) -> None:
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    found = came_in(document)
    config = apply(here(*names(document)), found.change(here(*names(document))))
    told = " ".join(why for _, why in found.aside)
    assert "-H kvm has no effect here, and goes out again: spice_tls_ciphers=" in told
    assert "spice_tls_ciphers" not in found.config.cluster.hvparams["kvm"]
    assert found.config.cluster.diskparams["drbd"]["c-plan-ahead"] == 1
    changed = successor(config.cluster, 2.0, hvparams={"kvm": {"acpi": False}})
    out = exported(apply(config, Change((changed,)))).document["cluster"]
    assert "HIGH" in out["hvparams"]["kvm"]["spice_tls_ciphers"]
    assert out["hvparams"]["kvm"]["acpi"] is False


SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("cluster", {"max_running_jobs": 0}, "max running jobs is a number from 1 to"),
    ("cluster", {"candidate_pool_size": 5000}, "candidate pool size is a number from"),
    ("cluster", {"mac_prefix": "01:00:00"}, "a MAC prefix that begins with 01"),
    ("cluster", {"uid_pool": [[0, 7]]}, "0-7 is no range of user-ids"),
    ("cluster", {"default_iallocator": "../hail"}, "no name of an allocator"),
    ("cluster", {"default_iallocator_params": {"a;b": ""}}, "no option of an"),
    ("cluster", {"use_external_mip_script": True}, "is set by no script here"),
    ("cluster", {"reserved_lvs": ["xenvg/home"]}, "no volume of others is touched"),
    ("cluster", {"enabled_disk_templates": ["plain", "odd"]}, "disk template 'odd'"),
    ("cluster", {"volume_group_name": "../x"}, "'../x' is not the name of a volume"),
    ("cluster", {"file_storage_dir": "srv/x"}, "file-storage-dir is an absolute path"),
    ("cluster", {"ndparams": {"oob_program": "/sbin/oob"}}, "put a script there"),
    ("nodegroups", {"ndparams": {"cpu_speed": -1}}, "cpu_speed=-1 goes out again"),
    ("nodes", {"ndparams": {"ssh_port": 2222}}, "nodes are reached over TLS"),
]


@pytest.mark.oracle
def test_settings_that_no_request_could_make_are_told_and_go_out_again(
    ganeti: Ganeti,
) -> None:
    """A cluster with no job at once, or cards of groups, would be of no use."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    for place, given, _ in SETTINGS:
        part = document[place]
        (part if place == "cluster" else next(iter(part.values()))).update(given)
    found = came_in(document)
    assert not found.wrong
    told = [why for _, why in found.aside]
    assert [why for _, _, why in SETTINGS if not any(why in one for one in told)] == []
    cluster = found.config.cluster
    assert (cluster.max_running_jobs, cluster.mac_prefix[:2]) == (20, "aa")
    assert cluster.candidate_pool_size <= 10
    assert (cluster.uid_pool, cluster.default_iallocator) == (STANDARD, "")
    own = here(*names(document)).cluster
    for name in ("volume_group_name", "file_storage_dir"):
        assert getattr(cluster, name) == getattr(own, name)
    assert list(cluster.enabled_disk_templates) == ["plain"]
    assert not [one for one in found.config.all(Node) if one.ndparams.get("ssh_port")]
    out = exported(found.config, NEWEST).document
    assert [*differences(comparable(out), comparable(document))] == []


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("enabled_disk_templates", "plain", "is a list of words, not 'plain'"),
        ("enabled_hypervisors", 5, "is a list of words, not 5"),
        ("reserved_lvs", [1], "is a list of words, not [1]"),
        ("mac_prefix", 5, "is text, not a whole number"),
    ],
)
def test_a_setting_of_a_wrong_type_stands_in_the_way(
    ganeti: Ganeti, name: str, value: object, told: str
) -> None:
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    document["cluster"][name] = value
    (wrong,) = came_in(document).wrong
    assert f"'{name}' {told}" in wrong


@pytest.mark.oracle
def test_the_masters_address_comes_in_and_is_down_until_somebody_says_so(
    ganeti: Ganeti,
) -> None:
    """Ganeti's master may have it still."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    theirs = {"master_ip": "192.0.2.9", "master_netdev": "br0", "master_netmask": 24}
    document["cluster"] |= theirs
    found = came_in(document)
    cluster = found.config.cluster
    assert {one: getattr(cluster, one) for one in theirs} == theirs
    assert not cluster.master_ip_active
    assert [why for _, why in found.aside if "gnt-cluster activate-master-ip" in why]
    new = successor(cluster, 2.0, master_ip="192.0.2.10")
    out = exported(apply(found.config, Change((new,)))).document["cluster"]
    assert (out["master_ip"], out["master_netdev"]) == ("192.0.2.10", "br0")
    document["cluster"]["master_netdev"] = "no device"
    odd = came_in(document)
    own = here(*names(document)).cluster
    assert odd.config.cluster.master_ip == own.master_ip
    assert [why for _, why in odd.aside if "not the name of a network device" in why]
    assert exported(odd.config).document["cluster"]["master_netdev"] == "no device"


@pytest.mark.oracle
def test_a_disk_without_a_volume_stands_in_the_way(ganeti: Ganeti) -> None:
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    next(iter(document["disks"].values()))["logical_id"] = []
    assert [one for one in came_in(document).wrong if "it has no volume" in one]


@pytest.mark.oracle
def test_users_are_lent_though_ganetis_guests_had_none_of_their_own(
    ganeti: Ganeti,
) -> None:
    """Ganeti's default is root and an empty pool: who reads exports needs a user."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    assert document["cluster"]["uid_pool"] == []
    found, target = came_in(document), here(*names(document))
    assert found.config.cluster.uid_pool == STANDARD
    told = [one for one in findings(found, target, down=True) if one.level == NOTICE]
    assert "security_model=none: guests run as root" in " ".join(map(str, told))
    assert exported(found.config, NEWEST).document["cluster"]["uid_pool"] == []


@pytest.mark.oracle
def test_words_that_none_can_have_here_are_told_and_go_out_again(
    ganeti: Ganeti,
) -> None:
    """Ganeti's tags have letters of all scripts, and its cards any name."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    one = next(each for each in document["instances"].values() if each["nics"])
    one["tags"], one["nics"][0]["name"] = ["größe:xl", "mine"], "up link"
    found = came_in(document)
    assert not found.wrong
    (made,) = (each for each in found.config.all(Instance) if each.uuid == one["uuid"])
    assert (made.tags, made.nics[0].name) == (("mine",), None)
    told = {why for of, why in found.aside if of == f"instance {one['name']}"}
    assert any("größe:xl" in why for why in told)
    assert any("'up link' is not a valid name" in why for why in told)
    out = exported(found.config, NEWEST).document["instances"][one["uuid"]]
    assert sorted(out["tags"]) == ["größe:xl", "mine"]
    assert out["nics"][0]["name"] == "up link"


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("place", "key"),
    [("instances", "name"), ("nodes", "name"), ("disks", "uuid"), ("nics", "uuid")],
)
def test_nothing_is_called_as_a_path(ganeti: Ganeti, place: str, key: str) -> None:
    """Nodes have files that are called after what comes in."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    instances = document["instances"].values()
    parts = {
        **document,
        "nics": {0: next(one for it in instances for one in it["nics"])},
    }
    next(iter(parts[place].values()))[key] = "../../etc/cron.d/x"
    known = here("node1.example.com", "node2.example.com", "node3.example.com")
    wrong = imported(document, known, fresh(), {}).wrong
    assert any("nothing can be called '../../etc/cron.d/x'" in one for one in wrong)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("cluster", "cluster_name"),
        *((one, "name") for one in ("nodegroups", "networks", "disks")),
        ("instances", "os"),
    ],
)
def test_no_name_is_more_than_a_line(ganeti: Ganeti, place: str, key: str) -> None:
    """Files of nodes (``ssconf``) list such names, and hooks and terminals get them."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    part = document[place]
    (part if place == "cluster" else next(iter(part.values())))[key] = "one\nother"
    wrong = came_in(document).wrong
    assert [one for one in wrong if "nothing can be called 'one\nother'" in one]


@pytest.mark.oracle
@pytest.mark.parametrize("size", [-5, 10**30])
def test_a_disk_of_no_size_that_there_is_stands_in_the_way(
    ganeti: Ganeti, size: int
) -> None:
    """One of them, and no planner would read the cluster."""
    document, _ = upgrade(read(ganeti.recorded("2.16")), NEWEST, fresh())
    next(iter(document["disks"].values()))["size"] = size
    assert f"a disk has 0 to 17179869184 MiB, not {size}" in came_in(document).wrong[0]
