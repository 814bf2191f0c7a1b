# SPDX-License-Identifier: BSD-2-Clause
"""Each kind of defect in a recorded file: told of as Ganeti's own library does."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ganetis_files import Ganeti
from moorage.config_data import Version, read, upgrade
from moorage.config_data.verify import complaints

pytestmark = pytest.mark.oracle
Defect = Callable[[Any], None]


class Parts(NamedTuple):
    """Objects of the document that a defect is made in."""

    cluster: Any
    node: Any
    other: Any
    group: Any
    instance: Any
    mirrored: Any
    disk: Any
    """Of `mirrored`, the first one."""


def parts_of(document: Any) -> Parts:
    disks = document["disks"]
    node, other, *_ = document["nodes"].values()
    group = document["nodegroups"][node["group"]]
    instances = document["instances"].values()
    kinds = {
        disks[one["disks"][0]]["dev_type"]: one for one in instances if one["disks"]
    }
    mirrored = kinds["drbd"]
    disk = disks[mirrored["disks"][0]]
    cluster = document["cluster"]
    return Parts(cluster, node, other, group, kinds["plain"], mirrored, disk)


def moved(objects: Any, to: str) -> None:
    objects[to] = objects.pop(next(iter(objects)))


SHARED: dict[str, tuple[str, Callable[[Any, Parts], object]]] = {
    "beparams of a wrong type": (
        "cluster",
        lambda _, at: at.cluster["beparams"]["default"].update(vcpus="many"),
    ),
    "unknown beparams": (
        "instance",
        lambda _, at: at.instance.update(beparams={"ram": 1}),
    ),
    "beparams that are no size": (
        "instance",
        lambda _, at: at.instance.update(beparams={"auto_balance": "maybe"}),
    ),
    "nicparams of a wrong type": (
        "cluster",
        lambda _, at: at.cluster["nicparams"]["default"].update(link=7),
    ),
    "a mode that is none": (
        "cluster",
        lambda _, at: at.cluster["nicparams"]["default"].update(mode="tunnel"),
    ),
    "a bridge without a name": (
        "instance",
        lambda _, at: at.instance["nics"][0].update(nicparams={"link": ""}),
    ),
    "ndparams of the cluster": (
        "cluster",
        lambda _, at: at.cluster["ndparams"].update(spindle_count="few"),
    ),
    "ndparams of a group": (
        "group",
        lambda _, at: at.group.update(ndparams={"cpu_speed": "fast"}),
    ),
    "ndparams of a node": (
        "node",
        lambda _, at: at.node.update(ndparams={"ssh_port": "ssh"}),
    ),
    "unknown ndparams": (
        "node",
        lambda _, at: at.node.update(ndparams={"colour": "red"}),
    ),
    "access that is none": (
        "cluster",
        lambda _, at: at.cluster["diskparams"]["rbd"].update(access="kernel"),
    ),
    "bounds the wrong way round": (
        "cluster",
        lambda _, at: at.cluster["ipolicy"]["minmax"][0]["min"].update(
            {"memory-size": 99999}
        ),
    ),
    "bounds without an end": (
        "cluster",
        lambda _, at: at.cluster["ipolicy"]["minmax"][0].pop("max"),
    ),
    "bounds that miss a size": (
        "cluster",
        lambda _, at: at.cluster["ipolicy"]["minmax"][0]["max"].pop("nic-count"),
    ),
    "no bounds": ("cluster", lambda _, at: at.cluster["ipolicy"].update(minmax=[])),
    "a ratio that is no number": (
        "cluster",
        lambda _, at: at.cluster["ipolicy"].update({"vcpu-ratio": "high"}),
    ),
    "a standard outside of the bounds": (
        "cluster",
        lambda _, at: at.cluster["ipolicy"]["std"].update({"disk-size": 1}),
    ),
    "a policy with a part more": (
        "group",
        lambda _, at: at.group["ipolicy"].update(colour=["red"]),
    ),
    "a mode of a disk": ("disk", lambda _, at: at.disk.update(mode="rx")),
    "a disk under another's key": (
        "disk",
        lambda _, at: at.disk.update(uuid="another", name="data1"),
    ),
    "a node under another's key": (
        "node",
        lambda _, at: at.other.update(uuid="another"),
    ),
    "a group under another's key": (
        "group",
        lambda _, at: at.group.update(uuid="another"),
    ),
    "no such primary node": (
        "instance",
        lambda _, at: at.instance.update(primary_node="mars"),
    ),
    "no such secondary node": (
        "instance",
        lambda _, at: at.disk["logical_id"].__setitem__(1, "mars"),
    ),
    "a MAC twice": (
        "instance",
        lambda _, at: at.instance["nics"][0].update(mac=at.mirrored["nics"][0]["mac"]),
    ),
    "names of disks": ("instance", lambda _, at: at.disk.update(iv_name="disk/7")),
    "a port twice": (
        "instance",
        lambda _, at: at.instance.update(network_port=at.disk["logical_id"][2]),
    ),
    "a port that is free, too": (
        "instance",
        lambda _, at: at.cluster["tcpudp_port_pool"].append(at.disk["logical_id"][2]),
    ),
    "a port above the highest": (
        "cluster",
        lambda _, at: at.cluster.update(highest_used_port=1),
    ),
    "a master that is no candidate": (
        "node",
        lambda document, at: document["nodes"][at.cluster["master_node"]].update(
            master_candidate=False
        ),
    ),
    "too few candidates": (
        "cluster",
        lambda document, _: [
            one.update(master_candidate=False) for one in document["nodes"].values()
        ],
    ),
    "a node in two states": (
        "node",
        lambda _, at: at.other.update(drained=True, offline=True),
    ),
    "a group twice": (
        "group",
        lambda document, at: document["nodegroups"].update(
            second=deepcopy(at.group) | {"uuid": "second"}
        ),
    ),
    "a group like a uuid": (
        "group",
        lambda _, at: at.group.update(name="b0b8a8a6-1111-4444-8888-0123456789ab"),
    ),
    "an address twice": (
        "node",
        lambda _, at: at.other.update(primary_ip=at.node["primary_ip"]),
    ),
    "the cluster's address twice": (
        "node",
        lambda _, at: at.other.update(secondary_ip=at.cluster["master_ip"]),
    ),
    "a card's address twice": (
        "instance",
        lambda _, at: [
            one["nics"][0].update(ip="192.0.2.7", network="lan")
            for one in (at.instance, at.mirrored)
        ],
    ),
}
"""Defects by what is told of, each with what makes it; Ganeti's library tells of
every one."""
BEYOND: dict[str, tuple[str, Callable[[Any, Parts], object]]] = {
    "a disk that is not there": (
        "instance",
        lambda _, at: at.instance["disks"].append("gone"),
    ),
    "an instance under another's key": (
        "instance",
        lambda document, _: moved(document["instances"], "another"),
    ),
    "a disk of two": (
        "instance",
        lambda _, at: at.instance["disks"].extend(at.mirrored["disks"]),
    ),
    "a group that is not there": ("node", lambda _, at: at.node.update(group="gone")),
    "a master that is not there": (
        "cluster",
        lambda _, at: at.cluster.update(master_node="mars"),
    ),
    "a parameter that is global": (
        "node",
        lambda _, at: at.node.update(ndparams={"exclusive_storage": True}),
    ),
    "a detached disk's node": (
        "disk",
        lambda document, at: document["disks"].update(
            lonely=deepcopy(at.disk)
            | {"uuid": "lonely", "logical_id": ["mars", "venus", 11999, 7, 8, "x"]}
        ),
    ),
    "a minor twice": (
        "disk",
        lambda document, at: document["disks"].update(
            lonely=deepcopy(at.disk)
            | {
                "uuid": "lonely",
                "logical_id": [*at.disk["logical_id"][:2], 11999, 0, 0, "x"],
            }
        ),
    ),
    "no hypervisor": (
        "cluster",
        lambda _, at: at.cluster["enabled_hypervisors"].clear(),
    ),
    "half a mirror": ("disk", lambda _, at: at.disk["logical_id"].pop()),
    "a mode that is a list": ("disk", lambda _, at: at.disk.update(mode=["rw"])),
}
"""Defects that its library overlooks, or ends at: what it does in a master, and what
it once did."""


@pytest.fixture(scope="module")
def recorded(ganeti: Ganeti) -> Any:
    numbers = iter(range(1000))
    data = read(ganeti.recorded("2.16"))
    document, _ = upgrade(data, Version(3, 0), lambda: f"new-{next(numbers)}")
    return document


def made(recorded: Any, change: Callable[[Any, Parts], object]) -> Any:
    document = deepcopy(recorded)
    change(document, parts_of(document))
    return document


@pytest.fixture(scope="module")
def theirs(
    ganeti: Ganeti, recorded: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """What Ganeti's library says of each defect."""
    directory = tmp_path_factory.mktemp("defects")
    files = []
    for number, (_, change) in enumerate(SHARED.values()):
        files.append(directory / f"{number}.data")
        files[-1].write_text(json.dumps(made(recorded, change)))
    return dict(zip(SHARED, ganeti.verify(*files), strict=True))


def test_a_recorded_file_is_told_of_as_ganeti_does(
    ganeti: Ganeti, recorded: Any, tmp_path: Path
) -> None:
    file = tmp_path / "config.data"
    file.write_text(json.dumps(recorded))
    assert [[one.message for one in complaints(recorded)]] == ganeti.verify(file)


@pytest.mark.parametrize("defect", SHARED)
def test_a_defect_is_told_of_in_ganetis_words(
    recorded: Any, theirs: dict[str, list[str]], defect: str
) -> None:
    kind, change = SHARED[defect]
    found = list(complaints(made(recorded, change)))
    before = {one.message for one in complaints(recorded)}
    new = [one for one in found if one.message not in before]
    assert kind in {one.kind for one in new}
    ours = {plain(one.message) for one in found if one.code == "ECLUSTERCFG"}
    assert ours == set(map(plain, theirs[defect])) != set()


def plain(message: str) -> str:
    """Return a complaint without what Ganeti lists in any order."""
    return message.partition(" (expected one of ")[0]


@pytest.mark.parametrize("defect", BEYOND)
def test_what_ganetis_library_overlooks_is_told_of(recorded: Any, defect: str) -> None:
    kind, change = BEYOND[defect]
    before = set(complaints(recorded))
    new = [one for one in complaints(made(recorded, change)) if one not in before]
    assert kind in {one.kind for one in new}


VALUES = ("words", "12", "", True, False, 7, "true", "False", [], None)


def test_parameters_of_hypervisors_are_of_ganetis_types(
    ganeti: Ganeti, recorded: Any
) -> None:
    """Its master looks, not its library; what is not set is as the cluster has it."""
    theirs = ganeti.hypervisor_parameters(*VALUES)
    document = deepcopy(recorded)
    instance = parts_of(document).instance
    instance["hypervisor"] = "kvm"
    where = f"hypervisor instance {instance['name']} parameters syntax check"
    for name, told in theirs.items():
        for value, why in zip(VALUES, told, strict=True):
            if value is None or (value == "" and "integer" in why):
                continue  # it is not set
            instance["hvparams"] = {name: value}
            said = [one.message for one in complaints(document) if where in one.message]
            assert said == ([f"{where} (source kvm): {why}"] if why else [])


@pytest.mark.parametrize("place", ["cluster", "os deb", "instance"])
def test_where_a_parameter_of_a_hypervisor_is_set(recorded: Any, place: str) -> None:
    document = deepcopy(recorded)
    at = parts_of(document)
    wrong = {"acpi": "perhaps"}
    (hypervisor, *_) = at.cluster["enabled_hypervisors"]
    if place == "cluster":
        at.cluster["hvparams"][hypervisor].update(wrong)
    elif place == "os deb":
        at.cluster["os_hvp"] = {"deb": {"xen-pvm": wrong}}
    else:
        at.instance["hvparams"] = wrong
    new = set(complaints(document)) - set(complaints(recorded))
    (one,) = new
    assert (one.kind, one.code) == (
        place.partition(" ")[0].replace("os", "cluster"),
        "ECLUSTERCFG",
    )
    assert "'acpi' (value perhaps) is not a valid boolean" in one.message
