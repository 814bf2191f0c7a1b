# SPDX-License-Identifier: BSD-2-Clause
"""Operations on the cluster: does verify find what is wrong, and what may be set."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage import __version__
from moorage.errors import BadInput, Unreachable, WrongState
from moorage.jobs import View
from moorage.jobs.deciding import reported
from moorage.model import (
    Device,
    GuestState,
    Held,
    Nic,
    NodeFacts,
    Provider,
    Unit,
    load,
)
from moorage.model.standstill import NO_ANSWER
from moorage.model.store_trouble import StoreTrouble
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.certificates import authority_on, pins_on
from moorage.ops.cluster.checks_copies import copies_on
from moorage.ops.cluster.checks_store import store_on
from moorage.ops.cluster.checks_watcher import look_on
from moorage.ops.cluster.observation import ask_facts
from moorage.ops.cluster.set_params import ClusterSetParams
from moorage.ops.cluster.verify import ClusterVerify
from moorage.protocol import (
    GetAuthority,
    GetCopies,
    GetFacts,
    GetPins,
    GetStore,
    GetWatcher,
    ListProviders,
    ReachNodes,
)
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.units import Mib

LUN = "/dev/disk/by-id/lun"


def guest(uuid: str, *disks: str, state: str = "running") -> GuestState:
    return GuestState(
        uuid=uuid, name=uuid, state=state, memory=Mib(128), vcpus=1, disks=disks
    )


def held(disk: str, epoch: int = 0) -> Held:
    return Held(disk=disk, path=None, uris={}, epoch=epoch)


def facts(*guests: GuestState, held: tuple[Held, ...] = (), version=__version__):
    room = {"memory_total": Mib(8192), "memory_free": Mib(8192), "cpus": 8}
    size = Mib(1024 * 1024)
    units = (
        Unit(template="ext", key="san"),
        Unit(template="file", key="/local", total=size, free=size),
        Unit(template="sharedfile", key="/shared", total=size, free=size),
    )
    return NodeFacts(version=version, guests=guests, held=held, units=units, **room)


MASTERS = {
    GetPins: "pins",
    GetAuthority: "authority",
    GetCopies: "copies",
    GetStore: "store",
    GetWatcher: "watched",
}
"""What the master is asked, and what its answers are called here."""


def verify(builder: ClusterBuilder, **answers) -> dict:
    """Run verify on canned facts of nodes; the others have nothing on them."""
    config = load(1, builder.objects.values())
    found: dict = {}
    operation = ClusterVerify()
    for question in operation.questions(View(config)):
        if isinstance(question.call, GetFacts):
            found[question] = answers.get(question.node, facts())
        elif isinstance(question.call, ListProviders):
            known = answers.get("providers", {})
            san = [Provider(name="san", path="/p/san")]
            found[question] = known.get(question.node, san)
        elif type(question.call) in MASTERS:
            found[question] = answers.get(MASTERS[type(question.call)])
        elif isinstance(question.call, ReachNodes):
            found[question] = {}
        else:
            device = answers["devices"][question.node]
            found[question] = [device for _ in question.call.paths]
    seen = View(config, found)
    assert list(operation.locks(seen)) == []
    operation.check(seen)
    assert list(operation.tasks(seen)) == []
    return reported(operation, seen, [])


def errors(builder: ClusterBuilder, **answers) -> list[str]:
    found = verify(builder, **answers)["errors"]
    assert all(one["hint"] for one in found)
    return [f"{one['object']}: {one['message']}" for one in found]


def warnings(builder: ClusterBuilder, **answers) -> list[str]:
    found = verify(builder, **answers)["warnings"]
    return [f"{one['object']}: {one['message']}" for one in found]


def running(*disks: str, **more) -> ClusterBuilder:
    """Return a cluster with the instance web1, which should run on node1."""
    builder = ClusterBuilder(3)
    for disk in disks:
        builder.disk(disk)
    fields = {"admin_state": "up", "disks_active": True} | more
    return builder.instance("web1", "node1", disks, **fields)


# -- verify ------------------------------------------------------------------------


def test_a_healthy_cluster_has_no_findings():
    node1 = facts(guest("web1", "d1"), held=(held("d1"),))
    found = verify(running("d1"), node1=node1)
    assert found == {
        "errors": [],
        "warnings": [],
        "notices": [],
        "jobs": [],
        "checked": {
            "nodes": 3,
            "nodes that answered": 3,
            "instances": 1,
            "disks": 1,
            "guests": 1,
        },
    }


def test_each_error_is_a_job_that_could_not_be_made():
    """Ganeti's program expects jobs that look, and tells why there is none."""
    found = verify(ClusterBuilder(2), node2=Unreachable("no route"))
    ((taken, why),) = found["jobs"]
    assert not taken
    assert why.startswith("node node2: it gives no answer (no route)")


def test_silent_nodes_are_found_unless_they_are_marked_offline():
    builder = ClusterBuilder(2).node("off", offline=True)
    (one,) = errors(builder, node2=Unreachable("no route"))
    assert one.startswith("node node2: it gives no answer (no route)")


def test_agents_of_another_version_are_found():
    (one,) = warnings(ClusterBuilder(2), node2=facts(version="0.0.1"))
    assert "0.0.1" in one


@pytest.mark.parametrize(
    ("state", "answers", "words"),
    [
        ("up", {}, "it should run on node node1, and does not"),
        ("down", {"node1": facts(guest("web1"))}, "should not run"),
        ("up", {"node2": facts(guest("web1"))}, "runs on node node2 and should be on"),
        (
            "up",
            {"node1": facts(guest("web1")), "node2": facts(guest("web1"))},
            "runs on node1 and node2 at once",
        ),
    ],
)
def test_instances_run_where_they_should_and_once(state, answers, words):
    (one,) = errors(running(admin_state=state), **answers)
    assert one.startswith("instance web1: ")
    assert words in one


def test_an_instance_on_a_node_that_is_off_is_found():
    builder = ClusterBuilder(1).node("off", offline=True)
    builder.instance("web1", "off", admin_state="up")
    (one,) = errors(builder)
    assert "its node off is marked offline" in one


LETTING_GO = "gnt-instance remove --ignore-failures web1"


@pytest.mark.parametrize(
    ("template", "hint"),
    [
        ("sharedfile", "gnt-instance failover web1"),
        (
            "file",
            f"bring node off back; if it is gone for good: {LETTING_GO}",
        ),
    ],
)
def test_an_instance_on_a_node_that_is_off_has_a_way_out(template, hint):
    builder = ClusterBuilder(1).node("off", offline=True)
    builder.disk("root", template, nodes=("off",) if template == "file" else ())
    builder.instance("web1", "off", ("root",), admin_state="up")
    (one,) = verify(builder)["errors"]
    assert one["hint"] == hint


def test_a_paused_guest_runs_and_leftovers_of_moves_are_told():
    builder = running(disks_active=False)
    node1 = facts(guest("web1", state="paused"))
    node2 = facts(guest("web1", state="moved"))
    (one,) = errors(builder, node1=node1, node2=node2)
    assert "it stands still (paused: it was paused)" in one
    (one,) = warnings(builder, node1=node1, node2=node2)
    assert "(moved) is left on node node2" in one


def test_guests_that_nobody_knows_are_found():
    (one,) = errors(ClusterBuilder(2), node2=facts(guest("ghost")))
    assert "a guest ghost (running) that the configuration does not know" in one
    (told,) = verify(ClusterBuilder(2), node2=facts(guest("ghost")))["errors"]
    assert told["hint"] == "gnt-node shutdown-orphan node2 ghost"


def test_guests_have_the_disks_of_their_instance():
    builder = running("d1").disk("d2")
    node1 = facts(guest("web1", "d2"), held=(held("d1"),))
    (one,) = errors(builder, node1=node1)
    assert "it uses disk d2, which is not attached to it" in one
    (one,) = warnings(builder, node1=node1)
    assert "it runs without its disk d1" in one
    hangs = replace(guest("web1", state="paused"), cause=NO_ANSWER)
    hung = {"node1": facts(hangs, held=(held("d1"),))}
    assert warnings(builder, **hung) == []
    (one,) = errors(builder, **hung)
    assert "its QEMU gives no answer" in one


def test_quarantined_disks_are_found():
    (one,) = errors(ClusterBuilder(1).disk("d1", quarantine="job 7: who knows"))
    assert one == "disk d1: it is quarantined: job 7: who knows"


@pytest.mark.parametrize(
    ("node", "what", "words"),
    [
        ("node2", held("d1", 4), "its instance web1 is on node node1"),
        ("node1", held("d1", 3), "by epoch 3, and it is in epoch 4"),
        ("node1", held("spare"), "it is attached to no instance"),
        ("node3", held("gone"), "holds disk gone, which the configuration"),
    ],
)
def test_attachments_that_nobody_accounts_for_are_found(node, what, words):
    builder = ClusterBuilder(3).disk("d1", epoch=4).disk("spare")
    builder.instance("web1", "node1", ("d1",), disks_active=True)
    (one,) = errors(builder, **{node: facts(held=(what,))})
    assert words in one


def test_disks_of_a_sleeping_instance_are_held_by_nobody():
    builder = running("d1", admin_state="down", disks_active=False)
    (one,) = errors(builder, node1=facts(held=(held("d1"),)))
    assert "the disks of its instance web1 are not active" in one


def test_disks_in_use_are_held():
    (one,) = warnings(running("d1"), node1=facts(guest("web1", "d1")))
    assert "node node1 does not hold this one" in one


@pytest.mark.requirement("S0-24")
def test_providers_in_use_are_valid_on_every_node_of_the_group():
    bad = Provider(name="san", path="/p", problem="File 'grow' is missing")
    builder = ClusterBuilder(3).node("far1", "far").disk("d1").disk("d2")
    answers = {"node2": [bad], "node3": [], "far1": []}
    first, second = warnings(builder, providers=answers)
    assert errors(builder, providers=answers) == []
    assert "ExtStorage provider 'san', of 2 disks in group default" in first
    assert "File 'grow' is missing" in first
    assert second.startswith("node node3: ")
    assert second.endswith("it is not there")


@pytest.mark.requirement("S0-16")
def test_a_provider_that_a_nodes_own_instances_need_is_an_error():
    """Elsewhere it is a warning: a new or drained node may come to have it yet."""
    builder = running("d1")
    (error,) = errors(
        builder, providers={"node1": [], "node2": []}, node1=facts(guest("web1", "d1"))
    )
    assert error.startswith("node node1: ")


@pytest.mark.requirement("S0-21")
def test_adopted_devices_are_the_same_on_every_node_of_the_group():
    builder = ClusterBuilder(3).node("far1", "far")
    lun = {"logical_id": ("manual", LUN), "size": 100}
    builder.disk("lun", "blockdev", params={}, **lun)
    same = Device(kind="block", size=Mib(100), identity="naa.5")
    devices = {"node1": same, "node2": same, "node3": same}
    assert errors(builder, devices=devices) == []
    other = devices | {"node2": replace(same, identity="naa.6")}
    (one,) = errors(builder, devices=other)
    assert f"{LUN} is not the same device on every node of group default" in one
    assert "100 MiB naa.5 on node1, node3; 100 MiB naa.6 on node2" in one
    absent = Device()
    (one,) = errors(builder, devices=devices | {"node3": absent})
    assert f"node node3 of group default has no block device {LUN}" in one


@pytest.mark.requirement("S0-18")
def test_a_directory_that_disks_need_is_set():
    builder = ClusterBuilder(1)
    builder.disk("d1", "sharedfile", logical_id=("loop", "/s/x"), params={})
    cluster = replace(builder.objects["cluster"], shared_file_storage_dir="")
    builder.objects["cluster"] = cluster
    found = verify(builder)["errors"]
    assert found[0]["message"].endswith("not set, for 1 disk of template 'sharedfile'")
    assert found[0]["hint"] == "gnt-cluster modify --shared-file-storage-dir=DIR"


async def test_verify_asks_the_real_agents(tmp_path):
    builder = running(admin_state="up").disk("d1")
    sim = await SimCluster.start(tmp_path, builder)
    sim.nodes.nodes["node3"].lose_power()
    found = await sim.run("OP_CLUSTER_VERIFY")
    assert [one["object"] for one in found["errors"]] == [
        "node node3",
        "instance web1",
    ]
    assert found["checked"]["nodes that answered"] == 2
    await sim.stop()


# -- set_params --------------------------------------------------------------------


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder(2).disk("d1").instance("web1", "node1", ("d1",))
    builder.disk("f", "file", logical_id=("loop", "/local/a/x"), nodes=("node1",))
    cluster = await SimCluster.start(tmp_path, builder)
    yield cluster
    await cluster.stop()


@pytest.mark.requirement("S0-18")
async def test_settings_are_changed(sim):
    await sim.run(
        "OP_CLUSTER_SET_PARAMS",
        hvparams={"kvm": {"accel": "tcg", "kernel_path": "/k"}},
        beparams={"default": {"memory": 512, "vcpus": 2}},
        diskparams={"ext": {"access": "userspace"}},
        shared_file_storage_dir="/srv/shared",
    )
    await sim.run("OP_CLUSTER_SET_PARAMS", hvparams={"kvm": {"accel": "default"}})
    cluster = sim.config.cluster
    assert cluster.hvparams == {"kvm": {"kernel_path": "/k"}}
    assert cluster.beparams["default"] == {"minmem": 512, "maxmem": 512, "vcpus": 2}
    assert cluster.diskparams == {"ext": {"access": "userspace"}}
    assert cluster.shared_file_storage_dir == "/srv/shared"


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"hvparams": {"kvm": {"kernel_pat": "/k"}}}, BadInput, "'kernel_pat'"),
        ({"hvparams": {"kvm": {"boot_order": "z"}}}, BadInput, "boot_order 'z'"),
        ({"shared_file_storage_dir": "srv"}, BadInput, "absolute path"),
        ({"shared_file_storage_dir": "/srv/../etc"}, BadInput, "shortest form"),
        ({"file_storage_dir": "/other"}, WrongState, "disk f is the file /local/a/x"),
        ({"file_storage_dir": ""}, WrongState, "disk f"),
        ({"enabled_disk_templates": []}, BadInput, "at least one"),
        ({"enabled_disk_templates": ["cheese"]}, BadInput, "'cheese'"),
        (
            {"enabled_disk_templates": ["file"]},
            WrongState,
            "'ext' is in use, by disk d1",
        ),
        ({"diskparams": {"cheese": {}}}, BadInput, "'cheese'"),
        ({"enabled_hypervisors": []}, BadInput, "at least one"),
        ({"enabled_hypervisors": ["fake"]}, WrongState, "in use, by instance web1"),
        ({"enabled_hypervisors": ["kvm", "xen"]}, BadInput, "no hypervisor 'xen'"),
        ({"beparams": {"speed": 1}}, BadInput, "no back-end parameter 'speed'"),
        ({"beparams": {"vcpus": 0}}, BadInput, "vcpus is a whole number"),
        ({"beparams": {"memory": "much"}}, BadInput, "'much'"),
        ({"beparams": {"minmem": 9, "maxmem": 8}}, BadInput, "is more than maxmem"),
        ({"colour": "red"}, BadInput, "colour"),
    ],
)
async def test_bad_settings_are_refused(sim, fields, kind, words):
    before = sim.config.serial_no
    error = await sim.refused("OP_CLUSTER_SET_PARAMS", **fields)
    assert isinstance(error, kind)
    assert words in error.message
    assert sim.config.serial_no == before


async def test_hypervisors_and_templates_are_enabled(sim):
    await sim.run(
        "OP_CLUSTER_SET_PARAMS",
        enabled_hypervisors=["kvm"],
        enabled_disk_templates=["ext", "file"],
        file_storage_dir="/local/a",
    )
    assert sim.config.cluster.enabled_disk_templates == ("ext", "file")


def test_only_the_cluster_is_held():
    seen = View(load(1, ClusterBuilder(1).objects.values()))
    (lock,) = ClusterSetParams(default_iallocator="hail").locks(seen)
    assert (lock.level, lock.shared) == ("cluster", False)


def test_what_the_store_needs_is_told_by_how_urgent_it_is():
    slow = StoreTrouble(said="a member is slow", command="etcdctl check perf")
    full = StoreTrouble(said="it is full", command="etcdctl defrag", urgent=True)
    assert warnings(ClusterBuilder(1), store=[slow]) == ["cluster: a member is slow"]
    found = verify(ClusterBuilder(1), store=[full])["errors"]
    (one,) = (one for one in found if one["hint"] == full.command)
    assert (one["object"], one["message"]) == ("cluster", "it is full")


def test_questions_are_the_reading_verbs():
    config = load(1, ClusterBuilder(1).objects.values())
    assert list(ClusterVerify().questions(View(config))) == [
        authority_on(View(config)),
        pins_on(View(config)),
        copies_on(View(config)),
        store_on(View(config)),
        look_on(View(config)),
        *ask_facts(config),
        providers_on("node1"),
    ]


async def test_a_change_of_nothing_succeeds(sim: SimCluster) -> None:
    """Clients of a cluster look so whether they may change it."""
    before = sim.config.cluster.serial_no
    await sim.run("OP_CLUSTER_SET_PARAMS")
    assert sim.config.cluster.serial_no == before


async def test_verify_finds_what_ganetis_check_of_a_configuration_finds(
    tmp_path: Path,
) -> None:
    """A master that runs has what no request makes: a store of before, or an import."""
    builder = ClusterBuilder(2)
    for name in ("web1", "web2"):
        nic = Nic(uuid=f"{name}-nic", mac="aa:00:00:00:00:01")
        builder.instance(name, nics=(nic,), network_port=11000)
    told = "hypervisor instance web3 parameters syntax check"
    bad = "it cannot start: hypervisor parameters of kvm"
    wrong = {"hypervisor": "kvm", "hvparams": {"acpi": "perhaps", "soundhw": 1}}
    builder.instance("web3", **wrong)
    cluster = await SimCluster.start(tmp_path, builder)
    found = (await cluster.run("OP_CLUSTER_VERIFY"))["errors"]
    assert [(one["object"], one["message"], one["ecode"]) for one in found] == [
        (
            "instance web3",
            f"{told} (source kvm): 'acpi' (value perhaps) is not a valid boolean",
            "ECLUSTERCFG",
        ),
        (
            "instance web2",
            "instance 'web2' has NIC 0 mac aa:00:00:00:00:01 duplicate",
            "ECLUSTERCFG",
        ),
        (
            "instance web1",
            "tcp/udp port 11000 has duplicates: web1/network port, web2/network port",
            "ECLUSTERCFG",
        ),
        (
            "instance web3",
            f"{bad}: 'acpi' is true or false, not text",
            "EINSTANCELAYOUT",
        ),
    ]
    await cluster.stop()
