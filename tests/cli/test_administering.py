# SPDX-License-Identifier: BSD-2-Clause
"""What an administrator types now and then, at a real master, on simulated nodes."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.model.processors import ProcessorModels
from moorage.protocol import Said

from .harbour import Harbour, harbour


@pytest.fixture
def at(typed: Any) -> Iterator[Harbour]:
    with harbour(typed) as found:
        yield found


def test_what_nodes_keep_disks_on(at: Harbour) -> None:
    shown = at.types("gnt-node list-storage -t lvm-pv --separator=: node1")
    assert shown.splitlines() == [
        "Node:Type:Name:Size:Used:Free:Allocatable",
        "node1:lvm-pv:/dev/sda:524288:0:524288:Y",
        "node1:lvm-pv:/dev/sdb:524288:0:524288:Y",
    ]
    shown = at.types("gnt-node list-storage -o node,type,name --no-headers node1")
    assert ["node1", "lvm-vg", "xenvg"] in [x.split() for x in shown.splitlines()]
    at.types("gnt-node modify-storage --allocatable=no node1 lvm-pv /dev/sdb")
    fields = "--no-headers -o name,allocatable"
    shown = at.types(f"gnt-node list-storage -t lvm-pv {fields} node1")
    assert [line.split() for line in shown.splitlines()] == [
        ["/dev/sda", "Y"],
        ["/dev/sdb", "N"],
    ]
    told = at.refuses("gnt-node modify-storage --allocatable=no node1 lvm-pv /dev/x")
    assert "node node1 has no physical volume /dev/x: it has /dev/sda, /dev/sdb" in told
    told = at.refuses("gnt-node modify-storage --allocatable=no node1 file /srv")
    assert "storage of type 'file' cannot be modified" in told


def test_volumes_say_whose_they_are(at: Harbour) -> None:
    fields = "node,vg,name,size,instance,disk"
    shown = at.types(f"gnt-node volumes --separator=: --no-headers -o {fields}")
    assert shown.splitlines() == ["node2:xenvg:vol-root:1024:web1:root"]
    shown = at.types("gnt-node volumes --separator=:")
    assert shown.splitlines()[0] == "Node:PhysDev:VG:Name:Size:Instance"


def test_a_volume_group_is_repaired_unless_disks_would_be_lost(at: Harbour) -> None:
    told = at.refuses("gnt-node repair-storage node2 lvm-vg xenvg")
    assert "group xenvg on node node2 has the only copy of 1 disk, " in told
    at.types("gnt-node repair-storage --ignore-consistency node2 lvm-vg xenvg")
    ran = [one.argv for one in at.cluster.nodes.nodes["node2"].machine.ran]
    assert ("vgreduce", "--removemissing", "--force", "xenvg") in ran


def test_a_silent_node_is_told_of(at: Harbour) -> None:
    at.cluster.nodes.cut_power("node3")
    told = at.refuses("gnt-node volumes")
    assert "Warning: node node3 gives no answer: " in told


def test_scripts_that_nodes_offer(at: Harbour) -> None:
    for name, code in (("node1", 0), ("node2", 3)):
        said = Said(output=f"up at {name}\n", code=code)
        machine = at.cluster.nodes.nodes[name].machine
        machine.admin_scripts["restricted-commands/uptime"] = lambda _, said=said: said
    shown = at.types("gnt-node restricted-command -M uptime node1")
    assert shown == "node1: up at node1\n"
    told = at.refuses("gnt-node restricted-command -g default uptime")
    assert "uptime failed on node2, node3" in told


def test_power_is_switched_by_a_program_of_the_masters_node(at: Harbour) -> None:
    asked: list[tuple[str, ...]] = []
    answers = {"power-status": '{"powered": true}', "health": '[["PSU0", "OK"]]'}

    def program(words: tuple[str, ...]) -> Said:
        asked.append(words)
        return Said(output=answers.get(words[0], ""))

    at.cluster.nodes.nodes["node1"].machine.admin_scripts["oob/ipmi"] = program
    told = at.refuses("gnt-node power status node2")
    assert "nobody knows how to switch the power of node node2" in told
    at.types("gnt-node modify --node-parameters oob_program=ipmi node2")
    assert at.types("gnt-node power status --no-headers") == "node2 powered\n"
    assert at.types("gnt-node health --no-headers node2") == "node2 PSU0=OK\n"
    told = at.refuses("gnt-node power -f off node2")
    assert "node node2 is not marked offline" in told
    at.types("gnt-node power -f --ignore-status off node2")
    assert asked[-1] == ("power-off", "node2")
    assert not at.cluster.config.node("node2").powered
    at.types("gnt-node power -f on node2")
    assert at.cluster.config.node("node2").powered
    told = at.refuses("gnt-node power -f cycle node1")
    assert "nobody knows" in told
    at.types("gnt-node modify --node-parameters oob_program=gone node3")
    told = at.refuses("gnt-node power -f cycle node2 node3")
    assert "This was done, and stays: power-cycle of node node2" in told
    assert "nothing was changed" not in told
    told = at.refuses("gnt-node power -f --ignore-status off node2 node3")
    assert "This was done, and stays: power-off of node node2" in told
    assert not at.cluster.config.node("node2").powered


def test_a_node_is_rebooted_once(at: Harbour) -> None:
    told = at.refuses("gnt-node powercycle --yes node1")
    assert "node node1 is the master's: this job would die with it" in told
    assert at.types("gnt-node powercycle --yes node2") == "Node node2 reboots\n"
    assert at.cluster.nodes.calls.count(("node2", "node.powercycle")) == 1


def test_what_a_node_can_be(at: Harbour) -> None:
    told = at.refuses("gnt-node modify --vm-capable no node2")
    assert "node node2 has 1 instance and 1 disk, instance web1 among them" in told
    at.types("gnt-node modify --vm-capable no -s 10.9.0.1 node1")
    node = at.cluster.config.node("node1")
    assert (node.vm_capable, node.secondary_ip) == (False, "10.9.0.1")
    assert "'x' is the name of no address" in at.refuses("gnt-node modify -s x node1")
    at.types("gnt-cluster modify -C 2")
    at.types("gnt-node modify -C no node3")
    told = at.refuses("gnt-node modify -C no node2")
    assert "without node node2 there are too few master candidates" in told
    at.types("gnt-node modify -C no --auto-promote node2")
    config = at.cluster.config
    marks = {name: config.node(name).master_candidate for name in ("node2", "node3")}
    assert marks == {"node2": False, "node3": True}
    at.types("gnt-node modify --master-capable no --auto-promote node3")
    assert not at.cluster.config.node("node3").master_candidate
    assert at.cluster.config.node("node2").master_candidate
    told = at.refuses("gnt-node modify --node-parameters bogus=1 node2")
    assert "there is no node parameter 'bogus'" in told


def test_settings_of_the_cluster(at: Harbour) -> None:
    at.types(
        "gnt-cluster modify --max-running-jobs 3 -m aa:bb:cc --user-shutdown yes "
        "--node-parameters cpu_speed=2 --maintain-node-health no --max-tracked-jobs 5"
    )
    cluster = at.cluster.config.cluster
    assert (cluster.max_running_jobs, cluster.mac_prefix) == (3, "aa:bb:cc")
    assert at.cluster.engine.slots.number == 3
    assert cluster.enabled_user_shutdown
    shown = at.types("gnt-node list --no-headers -o name,ndp/cpu_speed node2")
    assert shown == "node2 2.0\n"
    for line, word in (
        ("--max-running-jobs 0", "max running jobs is a number from 1 to 1000"),
        ("-m ab:bb:cc:dd", "a MAC prefix is three bytes"),
        ("-m 01:bb:cc", "a MAC prefix that begins with 01 is of groups"),
        ("--node-parameters bogus=1", "there is no node parameter 'bogus'"),
        ("--maintain-node-health yes", "yes is not supported: nobody powers"),
        ("--install-image x", "--install-image is not supported: OS scripts run"),
    ):
        assert word in at.refuses(f"gnt-cluster modify {line}")


def test_the_address_that_moves_with_the_master(at: Harbour) -> None:
    told = at.refuses("gnt-cluster modify --master-netdev br0")  # the cluster's name
    assert "'test' is the name of no address" in told
    at.types("gnt-cluster modify --master-ip 192.0.2.9 --master-netdev br0")
    at.types("gnt-cluster modify --master-netmask 24")
    shown = at.types("gnt-cluster info")
    assert "  master netdev: br0\n  master netmask: 24\n" in shown
    assert "yes is not supported" in at.refuses(
        "gnt-cluster modify --use-external-mip-script yes"
    )
    told = at.types("gnt-cluster deactivate-master-ip --yes")
    assert told == "The master's address is down\n"
    assert "master address is to be up: False" in at.types("gnt-cluster info")
    told = at.types("gnt-cluster activate-master-ip")
    assert told == "The master's address is up\n"
    at.types("gnt-cluster modify --master-netdev=")
    assert "has no address that moves" in at.refuses("gnt-cluster activate-master-ip")


def test_parameters_of_a_groups_disks(at: Harbour) -> None:
    at.types("gnt-group modify -D plain:stripes=2 default")
    assert at.cluster.config.group("default").diskparams == {"plain": {"stripes": "2"}}
    told = at.refuses("gnt-group modify -D plain:bogus=1 default")
    assert "disk template 'plain' has no parameter 'bogus'" in told
    at.types("gnt-group add -D ext:access=userspace --node-parameters cpu_speed=1 far")
    assert at.cluster.config.group("far").diskparams == {"ext": {"access": "userspace"}}


def test_the_command_that_would_set_a_policy(at: Harbour) -> None:
    at.types("gnt-group modify --ipolicy-vcpu-ratio 2 default")
    assert at.types("gnt-group show-ispecs-cmd") == (
        "gnt-group add --ipolicy-vcpu-ratio 2.0 default\n"
    )
    shown = at.types("gnt-group show-ispecs-cmd --include-defaults default")
    flags = shown.removeprefix("gnt-group add ").removesuffix("default\n")
    at.types(f"gnt-group add {flags} twin")
    twin = at.types("gnt-group list --no-headers -o ipolicy twin")
    assert twin == at.types("gnt-group list --no-headers -o ipolicy default")


def test_verify_as_monitoring_plugins_read_it(at: Harbour) -> None:
    at.cluster.nodes.cut_power("node3")
    coded = at.refuses_out("gnt-cluster verify --error-codes --no-nplus1-mem")
    line = next(x for x in coded.splitlines() if ":node:node3:" in x)
    assert line.startswith("  - ERROR:ENODERPC:node:node3:it gives no answer (")
    ignoring = "-I ENODERPC -I ENODETIME -I EINSTANCEWRONGNODE"  # two of Ganeti's alone
    mild = at.types(f"gnt-cluster verify --error-codes {ignoring} --no-nplus1-mem")
    assert "  - WARNING:ENODERPC:node:node3:" in mild
    at.types("gnt-group add far")
    assert "No problem found" in at.types("gnt-cluster verify -g far")
    told = at.refuses("gnt-cluster verify -I NOSUCH")
    assert "verify has no error code 'NOSUCH'" in told


def test_verify_leaves_out_the_loss_of_nodes(at: Harbour) -> None:
    at.types("gnt-node modify --vm-capable no node1")
    for name in ("web1", "web2"):
        at.types(f"gnt-instance modify -B memory=31000 {name}")
        record = at.cluster.config.instance(name)
        assert record.beparams["maxmem"] == 31000
    at.types("gnt-instance startup web2")
    at.types("gnt-instance startup web1")
    codes = [x.split(":")[1] for x in at.any("gnt-cluster verify --error-codes")]
    assert "ENODESHAREDN1" in codes
    assert "ENODEN1" not in codes
    at.types("gnt-cluster verify -I ENODESHAREDN1")
    line = "gnt-cluster verify --error-codes --no-nplus1-mem"
    assert "ENODESHAREDN1" not in [x.split(":")[1] for x in at.any(line)]


@pytest.mark.requirement("S2-06")
def test_verify_fails_without_memory_for_a_failover_of_mirrored_ones(
    at: Harbour,
) -> None:
    """As in Ganeti: an error, and an exit status, that can be made a warning."""
    for name in ("m1", "m2", "m3"):
        line = f"gnt-instance add -t drbd --disk 0:size=1G -n node2:node3 {name}"
        at.types(f"{line} -B memory=24000 --no-start --ignore-capacity --no-install")
    told = at.refuses_out("gnt-cluster verify --error-codes")
    assert "ERROR:ENODEN1:node:node3:not enough memory to accommodate" in told
    assert "should node node2 fail (72000 MiB needed" in told
    at.types("gnt-cluster verify -I ENODEN1")
    at.types("gnt-cluster verify --no-nplus1-mem")


def test_disks_that_a_node_lost_are_attached_again(at: Harbour) -> None:
    at.types("gnt-instance activate-disks web1")
    assert "All disks that should be" in at.types("gnt-cluster verify-disks")
    at.cluster.nodes.cut_power("node2")
    at.cluster.nodes.nodes["node2"].boot()
    shown = at.types("gnt-cluster verify-disks")
    assert shown.startswith("Activating disks for instance 'web1'\n")
    assert "All disks that should be" in at.types("gnt-cluster verify-disks")
    at.types("gnt-group add far")
    at.types("gnt-cluster verify-disks -g far")


def test_the_watcher_is_paused(at: Harbour) -> None:
    assert at.types("gnt-cluster watcher info") == "The watcher is not paused\n"
    at.types("gnt-cluster watcher pause 2h")
    assert "The watcher is paused until " in at.types("gnt-cluster watcher info")
    at.types("gnt-cluster watcher continue")
    assert at.types("gnt-cluster watcher info") == "The watcher is not paused\n"
    assert "'x' is no time" in at.refuses("gnt-cluster watcher pause x")
    assert "takes pause with a time" in at.refuses("gnt-cluster watcher pause")


def test_the_cluster_gets_another_name(at: Harbour) -> None:
    at.types("gnt-cluster rename --yes fleet.example.com")
    assert at.cluster.config.cluster.cluster_name == "fleet.example.com"
    assert "called fleet.example.com already" in at.refuses(
        "gnt-cluster rename --yes fleet.example.com"
    )
    assert "is not the name of a cluster" in at.refuses("gnt-cluster rename -f a_b")
    assert "each change" in at.types("gnt-cluster redist-conf")


def test_the_command_that_would_set_the_clusters_policy(at: Harbour) -> None:
    shown = at.types("gnt-cluster show-ispecs-cmd")
    flags = shown.removeprefix("gnt-cluster init ").removesuffix("NAME\n")
    at.types(f"gnt-cluster modify {flags}")
    assert at.types("gnt-cluster show-ispecs-cmd") == shown


def test_a_power_cut_is_prepared_for(at: Harbour) -> None:
    asked: list[tuple[str, ...]] = []

    def program(words: tuple[str, ...]) -> Said:
        asked.append(words)
        return Said(output="")

    said = at.types("gnt-cluster epo --yes node3")  # instances go down all the same
    assert "node node3 has no oob_program: switch it by hand" in said
    at.cluster.nodes.nodes["node1"].machine.admin_scripts["oob/ipmi"] = program
    at.types("gnt-cluster modify --node-parameters oob_program=ipmi")
    at.types("gnt-instance startup web2")
    at.types("gnt-cluster epo --yes node3")
    assert asked == [("power-off", "node3")]
    web2 = at.cluster.config.instance("web2")
    assert web2.admin_state == "up"  # the watcher starts it when power is back
    assert not at.cluster.config.node("node3").powered
    at.types("gnt-cluster epo --yes --on --groups default")
    assert ("power-on", "node3") in asked
    assert "name nodes, or --all" in at.refuses("gnt-cluster epo")
    at.types("gnt-cluster epo --yes --on --all")
    assert ("power-on", "node1") not in asked  # the master's node is on
    said = at.refuses("gnt-cluster epo --yes --groups rack2")
    assert "node group 'rack2' is not known" in said
    at.types("gnt-group add rack2")
    said = at.refuses("gnt-cluster epo --yes --groups rack2")
    assert "no node is in rack2" in said


def test_the_cpu_models_that_all_nodes_of_a_group_have(at: Harbour) -> None:
    for name in ("node1", "node2", "node3"):
        lacking = {"Nehalem": (), "Haswell": ("hle",) if name == "node2" else ()}
        models = ProcessorModels(accelerator="kvm", lacking=lacking)
        at.cluster.nodes.nodes[name].hypervisor.models = models
    assert at.types("gnt-group cpu-models default").splitlines() == [
        (
            "CPU models that all nodes of node group default have: node1 (kvm), "
            "node2 (kvm), node3 (kvm)"
        ),
        "  Nehalem",
        "CPU models that some lack:",
        "  Haswell: node2 lacks hle",
    ]
    at.types("gnt-instance modify -H cpu_type=Haswell web2")
    at.types("gnt-instance startup web2")
    told = at.refuses("gnt-instance migrate -f -n node2 web2")
    assert "its processor lacks hle" in told
