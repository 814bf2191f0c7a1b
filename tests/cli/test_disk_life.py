# SPDX-License-Identifier: BSD-2-Clause
"""Disks without an instance, and storage against records, typed at a master."""

import json
from collections.abc import Callable, Iterator

import pytest
import yaml

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

LOST = "5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11.ext.disk0"
PAIR = ("node2", "node3", 11000, 0, 0, "secret")
Types = Callable[..., str]


@pytest.fixture
def sim() -> Iterator[Served]:
    builder = ClusterBuilder().instance("web1")
    builder.disk("m1", "drbd", logical_id=PAIR, nodes=("node2", "node3"), params={})
    builder.instance("web2", "node2", ("m1",))
    with served(builder) as found:
        yield found


@pytest.mark.requirement("S3-04", "S3-13", "S3-53", "S3-54")
def test_every_verb_on_a_disk_that_no_instance_has(types: Types) -> None:
    """Made, shown, changed, named anew, grown, copied, tagged and removed."""
    types("gnt-disk add -t ext -p san -s 1G -D tier=ssd data1")
    assert types("gnt-disk list --no-headers -o name,status data1") == (
        "data1 detached\n"
    )
    types("gnt-disk modify --mode ro -D tier=hdd data1")
    types("gnt-disk rename data1 data2")
    types("gnt-disk grow data2 1G")
    types("gnt-disk snapshot data2 --name copy")
    types("gnt-disk add-tags data2 gold")
    (told,) = yaml.safe_load(types("gnt-disk info data2"))
    assert (told["Size"], told["Access mode"], told["Tags"]) == ("2.0G", "ro", "gold")
    assert told["Parameters"]["tier"] == "hdd"
    assert told["State"] == "detached"
    for name in ("data2", "copy"):
        types(f"gnt-disk remove -f {name}")
    assert types("gnt-disk list --no-headers -o name") == "m1\n"


@pytest.mark.requirement("S3-30", "S3-31", "S3-32")
def test_an_instances_template_is_that_of_its_disks(types: Types) -> None:
    def shown() -> str:
        line = "gnt-instance list --no-headers -o disk_template"
        told = types(f"{line} web1").strip()
        found = types(f"{line} -F 'disk_template == \"{told}\"' ")
        assert found.split().count(told) == len(found.split())
        return told

    assert shown() == "diskless"
    types("gnt-instance modify --disk add:size=64M,dev_type=file web1")
    assert shown() == "file"
    types("gnt-instance modify --disk add:size=64M,dev_type=sharedfile web1")
    assert shown() == "mixed"
    types("gnt-instance modify --disk 0:detach web1")
    assert shown() == "sharedfile"


def test_nothing_is_plugged_into_a_guest_that_does_not_run(types: Types) -> None:
    new = "--disk add:size=64M,dev_type=file"
    told = types(f"gnt-instance modify --hotplug {new} web1", status=1)
    assert "web1 is not running: nothing can be plugged in" in told
    types(f"gnt-instance modify --hotplug-if-possible {new} web1")
    types("gnt-instance startup web1")
    told = types(f"gnt-instance modify --no-hotplug {new} web1", status=1)
    assert "web1 is running: its disks and cards change at once, or not at all" in told
    types("gnt-instance modify --no-hotplug -B vcpus=2 web1")
    types(f"gnt-instance modify --hotplug {new} web1")
    shown = types("gnt-instance list --no-headers -o disk.count,oper_state web1")
    assert shown.split() == ["2", "Y"]


@pytest.mark.requirement("S1-24")
def test_a_removed_disk_leaves_its_data_where_it_is(types: Types, sim: Served) -> None:
    """The command line's part of the row; RAPI and LUXI have theirs."""
    types("gnt-instance modify --disk add:size=64M,dev_type=ext,provider=san web1")
    (name,) = sim.cluster.nodes.san.volumes
    types("gnt-instance modify --disk 0:remove --keep-disks web1")
    assert types("gnt-disk list --no-headers -o name") == "m1\n"
    assert list(sim.cluster.nodes.san.volumes) == [name]
    types("gnt-instance modify --disk add:size=64M,dev_type=ext,provider=san web1")
    types("gnt-instance modify --disk 0:remove web1")
    assert list(sim.cluster.nodes.san.volumes) == [name]


@pytest.mark.requirement("S3-14")
def test_an_attached_disk_is_not_removed(types: Types) -> None:
    types("gnt-disk add -t ext -p san -s 1G data1")
    types("gnt-disk attach data1 web1")
    told = types("gnt-disk remove -f data1", status=1)
    assert "Cannot remove disk data1. Disk is attached to instance web1" in told
    types("gnt-disk detach data1")
    types("gnt-disk remove -f data1")


@pytest.mark.requirement("S3-12")
def test_an_instances_nodes_are_those_of_its_disks(types: Types, sim: Served) -> None:
    shown = types("gnt-instance list --no-headers --separator=: -o name,pnode,snodes")
    assert shown == "web1:node1:\nweb2:node2:node3\n"
    config = sim.cluster.config
    found = config.nodes_of(config.instance("web2"))  # what the planner goes by
    assert [node.name for node in found] == ["node2", "node3"]
    types("gnt-disk detach m1")
    shown = types("gnt-instance list --no-headers --separator=: -o name,pnode,snodes")
    assert shown == "web1:node1:\nweb2:node2:\n"


@pytest.mark.requirement("S3-23")
def test_verify_has_nothing_against_detached_disks(types: Types) -> None:
    """The whole row: made alone, detached, and left by an instance that went."""
    types("gnt-instance remove -f --keep-disks web2")
    types("gnt-disk forget -f --reason 'it was none' m1")
    for name in ("data1", "data2", "data3"):
        types(f"gnt-disk add -t ext -p san -s 1G {name}")
    types("gnt-disk attach data2 web1")
    types("gnt-disk attach data3 web1")
    types("gnt-disk detach data2")
    types("gnt-instance remove -f --keep-disks web1")
    found = json.loads(types("gnt-cluster verify --json"))
    assert (found["errors"], found["warnings"]) == ([], [])
    assert found["checked"]["disks"] == 3


@pytest.mark.requirement("S3-27")
def test_an_instance_goes_and_its_disks_stay(types: Types) -> None:
    types("gnt-disk add -t ext -p san -s 1G data1")
    types("gnt-disk attach data1 web1")
    types("gnt-instance remove -f --keep-disks web1")
    shown = types("gnt-disk list --no-headers -o name,status,instance data1")
    assert shown == "data1 detached -\n"


@pytest.mark.requirement("S0-59")
def test_three_disks_of_several_providers_as_typed(types: Types) -> None:
    """The whole row: the example of the design, and what `info` says of each."""
    disks = [
        f"--disk {slot}:size=64M,provider={provider}"
        for slot, provider in enumerate(("san", "plainsan", "san"))
    ]
    plain = "-n node1 --no-install --no-nics"
    types(f"gnt-instance add -t ext {plain} {' '.join(disks)} w")
    (told,) = yaml.safe_load(types("gnt-instance info w"))
    ids = [one["logical_id"] for one in told["Disks"]]
    assert [provider for provider, _ in ids] == ["san", "plainsan", "san"]
    kinds = [name.partition(".")[2] for _, name in ids]
    assert kinds == ["ext.disk0", "ext.disk1", "ext.disk2"]
    assert len({name for _, name in ids}) == 3


@pytest.mark.requirement("S3-03", "S3-38", "S0-59")
def test_disks_of_several_templates_in_one_instance(types: Types) -> None:
    """The whole row: some made with their instance, one added, one attached."""
    types(
        "gnt-instance add -n node1 --no-install --no-nics "
        "--disk 0:size=64M,dev_type=plain,name=a "
        "--disk 1:size=64M,dev_type=ext,provider=san,name=b mixed1"
    )
    types("gnt-instance modify --disk add:size=64M,dev_type=file,name=c mixed1")
    types("gnt-disk add -t sharedfile -s 64M d")
    types("gnt-disk attach d mixed1")
    shown = types("gnt-instance list --no-headers -o disk_template,disk.count mixed1")
    assert shown.split() == ["mixed", "4"]
    shown = types("gnt-disk list --no-headers --separator=: -o name,dev_type a b c d")
    assert shown.split() == ["a:plain", "b:ext", "c:file", "d:sharedfile"]
    (told,) = yaml.safe_load(types("gnt-instance info mixed1"))
    assert [one["name"] for one in told["Disks"]] == ["a", "b", "c", "d"]
    named = types("gnt-instance migrate -f -n node3 mixed1", status=1)
    assert "disk layout 'plain' does not allow migrations (disk a of mixed1)" in named
    types("gnt-instance modify --disk add:size=64M,dev_type=ext,provider=san web1")
    types("gnt-instance remove -f mixed1")
    assert types("gnt-disk list --no-headers -o name a", status=1)


@pytest.mark.requirement("S0-59")
def test_three_disks_of_three_providers_as_they_are_typed(types: Types) -> None:
    types(
        "gnt-instance add -n node1 -t ext --no-install --no-nics "
        "--disk 0:size=1G,provider=san,tier=ssd --disk 1:size=2G,provider=plainsan "
        "--disk 2:size=3G,provider=usersan,access=userspace three"
    )
    (told,) = yaml.safe_load(types("gnt-instance info three"))
    ids = [one["logical_id"] for one in told["Disks"]]
    assert [provider for provider, _ in ids] == ["san", "plainsan", "usersan"]
    for number, (_, volume) in enumerate(ids):
        uuid, end = volume.split(".", 1)
        assert (bool(uuid), end) == (True, f"ext.disk{number}")


@pytest.mark.requirement("S3-52")
def test_a_detached_disk_is_removed_where_its_group_is(typed) -> None:
    """The provider of no other group's nodes is asked, though these come first."""
    builder = ClusterBuilder(2).node("yonder1", "far").node("yonder2", "far")
    builder.disk("old", group="far", last_node=None)
    with served(builder) as sim:
        cluster = sim.cluster
        cluster.nodes.san.volumes["vol-old"] = {"size": 1, "provider": "san"}
        assert typed("gnt-disk remove -f old", **sim.environ).status == 0
        ran = {
            name
            for name, node in cluster.nodes.nodes.items()
            if any(one.argv[0].endswith("/remove") for one in node.machine.ran)
        }
        assert ran == {"yonder1"}
        assert "vol-old" not in cluster.nodes.san.volumes


# -- gnt-storage reconcile -------------------------------------------------------------


@pytest.fixture
def drifted(types: Types, sim: Served) -> str:
    """Lose a volume, and have one that nobody knows; return the lost one's name."""
    types("gnt-instance remove -f --keep-disks web2")
    types("gnt-disk forget -f --reason 'it was none' m1")
    for name in ("data1", "data2"):
        types(f"gnt-disk add -t ext -p san -s 64M {name}")

    async def drift(cluster) -> str:
        san = cluster.nodes.san
        lost = cluster.config.disk("data1").volume
        san.volumes[LOST] = san.volumes.pop(lost)
        return str(lost)

    return sim.inside(drift)


def test_a_plan_is_shown_and_nothing_is_done(types: Types, drifted: str) -> None:
    out = types("gnt-storage reconcile", status=1).splitlines()
    assert out[0].split()[:3] == ["State", "Storage", "Volume"]
    assert out[1].split()[:4] == ["forgotten", "ext", f"san/{LOST}", "64M"]
    assert out[2].split()[:3] == ["missing", "-", f"san/{drifted}"]
    assert out[3:5] == ["1 forgotten, 1 missing, 1 referenced", "Plan:"]
    assert out[5] == (
        f"  - make a disk in quarantine of volume san/{LOST}: its name is of our kind, "
        "and no disk is known to be in it"
    )
    lost = f"there is no volume san/{drifted} on node1, node2, node3"
    assert out[6:] == [f"  - quarantine disk data1: {lost}"]
    assert types("gnt-disk list --no-headers -o name,status") == (
        "data1 detached\ndata2 detached\n"
    )


def test_a_dry_run_shows_the_plan_that_would_be_done(
    types: Types, drifted: str
) -> None:
    assert drifted in types("gnt-storage reconcile --dry-run", status=1)
    told = types("gnt-storage reconcile --apply --yes --dry-run", status=1)
    assert f"quarantine disk data1: there is no volume san/{drifted}" in told
    assert types("gnt-disk list --no-headers -o name,status") == (
        "data1 detached\ndata2 detached\n"
    )


def test_the_plan_is_done_when_somebody_agrees(types: Types, drifted: str) -> None:
    del drifted
    told = types("gnt-storage reconcile --apply", status=1)
    assert "nobody is here to be asked: Carry out these 2 steps?" in told
    assert types("gnt-storage reconcile --apply --yes").endswith("The plan is done\n")
    shown = types("gnt-disk list --no-headers -o name,status")
    assert shown == "-     quarantined\ndata1 quarantined\ndata2 detached\n"
    out = types("gnt-storage reconcile")
    assert out.endswith("There is nothing to do\n")


def test_programs_get_all_of_it(types: Types, drifted: str) -> None:
    found = json.loads(types("gnt-storage reconcile --json --all", status=1))
    assert sorted(found) == [
        "attached",
        "counts",
        "doubts",
        "missing",
        "plan",
        "storages",
        "unasked",
        "volumes",
    ]
    assert {one["state"] for one in found["volumes"]} == {"forgotten", "referenced"}
    assert [one["do"] for one in found["plan"]] == ["quarantine", "suspend"]
    assert found["missing"][0]["volume"] == f"san/{drifted}"
    done = json.loads(types("gnt-storage reconcile --json --apply --yes"))
    assert len(done["plan"]) == 2
    assert json.loads(types("gnt-storage reconcile --json"))["plan"] == []


def test_what_was_found_is_adopted(types: Types, drifted: str) -> None:
    del drifted
    types(f"gnt-disk adopt -t ext -p san --name mine {LOST}")
    types("gnt-disk attach mine web1")
    shown = types("gnt-disk list --no-headers -o name,size,instance mine")
    assert shown == "mine 64M web1\n"
    told = types(f"gnt-disk adopt --name other {LOST}", status=1)
    assert "the disk names no template" in told
    assert "names no template" in types("gnt-disk add -s 1G bare", status=1)
    assert "has no size" in types("gnt-disk add -t sharedfile bare", status=1)


def test_the_secret_of_a_mirror_is_shown_nowhere(types: Types) -> None:
    told = [
        types("gnt-disk list -o name,logical_id"),
        types("gnt-disk info m1"),
        types("gnt-disk story m1"),
        types("gnt-instance info web2"),
    ]
    assert all("11000" in one for one in (told[0], told[1], told[3]))
    assert not any(PAIR[-1] in one for one in told)


def test_a_mirrored_disk_gets_two_nodes_where_nobody_names_any(types: Types) -> None:
    types("gnt-disk add -t drbd -s 64 m2")
    types("gnt-disk add -t drbd -s 64 -n node3 m3")
    assert types("gnt-disk list --no-headers -o name,nodes m2") == "m2 node1,node2\n"
    assert types("gnt-disk list --no-headers -o name,nodes m3") == "m3 node3,node1\n"
