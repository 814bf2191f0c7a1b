# SPDX-License-Identifier: BSD-2-Clause
"""What nobody set has its default, and the type that Ganeti's clients look for."""

import pytest

from moorage.api.cluster_info import cluster_info
from moorage.api.query import Sources, query
from moorage.testing.cluster import ClusterBuilder, SimCluster

HTOOLS = {
    "node": [
        *("ndp/spindle_count", "ndp/exclusive_storage", "ndp/cpu_speed"),
        *("name", "mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal", "cnos"),
        *("offline", "drained", "vm_capable", "group.uuid", "tags"),
    ],
    "instance": [
        *("name", "disk_usage", "be/memory", "be/vcpus", "status", "pnode", "snodes"),
        *("tags", "be/auto_balance", "disk_template", "be/spindle_use", "disk.sizes"),
        *("disk.spindles", "forthcoming", "hv/boot_order", "hv/acpi"),
    ],
    "group": ["uuid", "name", "alloc_policy", "ipolicy", "tags", "ndp/ovs_name"],
}
INFO = {
    *("compression_tools", "data_collector_interval", "default_iallocator_params"),
    *("drbd_usermode_helper", "enabled_data_collectors", "install_image"),
    *("instance_communication_network", "maintain_node_health", "master_netdev"),
    *("master_netmask", "max_tracked_jobs", "modify_ssh_setup", "prealloc_wipe_disks"),
    *("reserved_lvs", "ssh_key_bits", "ssh_key_type", "use_external_mip_script"),
    *("vcs_version", "zeroing_image"),
}


@pytest.fixture
async def sim(tmp_path):
    sim = await SimCluster.start(
        tmp_path / "sim",
        ClusterBuilder().disk("root").instance("web1", disks=("root",)),
    )
    yield sim
    await sim.stop()


@pytest.mark.parametrize("what", HTOOLS)
async def test_a_fresh_cluster_has_what_ganetis_planners_read(sim, what):
    told = await query(
        what, HTOOLS[what], None, Sources(sim.config_store, sim.nodes, sim.engine)
    )
    for row in told["data"]:
        without = [
            name for name, (status, _) in zip(HTOOLS[what], row, strict=True) if status
        ]
        assert without == []


async def test_the_clusters_settings_are_whole(sim):
    told = cluster_info(sim.config)
    assert told.keys() >= INFO
    assert {"acpi", "boot_order", "kernel_path"} < told["hvparams"]["kvm"].keys()
    assert told["beparams"]["default"].keys() == {
        *("always_failover", "auto_balance", "maxmem", "minmem"),
        *("spindle_use", "vcpus"),
    }
    assert told["nicparams"]["default"] == {"mode": "bridged", "link": "", "vlan": ""}
    assert told["ndparams"]["spindle_count"] == 1


async def test_values_have_their_types(sim):
    wish = {"hvparams": {"acpi": "false", "vnc_bind_address": "127.0.0.1"}}
    await sim.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", **wish)
    sources = Sources(sim.config_store, sim.nodes, sim.engine)
    told = await query("instance", ["hvparams", "custom_hvparams"], None, sources)
    filled, own = [value for _, value in told["data"][0]]
    assert filled["acpi"] is False
    assert own.keys() == wish["hvparams"].keys()
