# SPDX-License-Identifier: BSD-2-Clause
"""The fields of instances: every one of Ganeti's is listed, and every one has a value.

The names are those of its documentation; the parameters are those that kvm takes.
"""

from pathlib import Path

from desk import desk
from moorage import backend
from moorage.api.query import resource_named
from moorage.model.hvparams import KNOWN
from moorage.testing.scenarios import harbour

GANETI = (
    "admin_state",
    "admin_state_source",
    "admin_up",
    "beparams",
    "console",
    "ctime",
    "custom_beparams",
    "custom_hvparams",
    "custom_nicparams",
    "custom_osparams",
    "disk.count",
    "disk.names",
    "disk.sizes",
    "disk.spindles",
    "disk.uuids",
    "disk_template",
    "disk_usage",
    "disks_active",
    "forthcoming",
    "hvparams",
    "hypervisor",
    "ip",
    "mac",
    "bridge",
    "mtime",
    "name",
    "network_port",
    "nic.bridges",
    "nic.count",
    "nic.ips",
    "nic.links",
    "nic.macs",
    "nic.modes",
    "nic.names",
    "nic.networks",
    "nic.networks.names",
    "nic.uuids",
    "nic.vlans",
    "nic_link",
    "nic_mode",
    "nic_network",
    "oper_ram",
    "oper_state",
    "oper_vcpus",
    "os",
    "osparams",
    "pnode",
    "pnode.group",
    "pnode.group.uuid",
    "sda_size",
    "sdb_size",
    "serial_no",
    "snodes",
    "snodes.group",
    "snodes.group.uuid",
    "status",
    "tags",
    "uuid",
    "vcpus",
)
SLOTS = {"disk.size": 16, "disk.spindles": 16, "disk.name": 16, "disk.uuid": 16}
CARDS = ("ip", "mac", "name", "uuid", "mode", "link", "bridge", "vlan", "network")


def listed() -> set[str]:
    return {field.name for field in resource_named("instance").all_fields()}


def test_every_field_is_listed() -> None:
    wanted = set(GANETI)
    wanted |= {f"hv/{name}" for name in KNOWN}
    wanted |= {f"be/{name}" for name in (*backend.PARAMETERS, "memory")}
    for head, most in SLOTS.items():
        wanted |= {f"{head}/{number}" for number in range(most)}
    for part in CARDS:
        wanted |= {f"nic.{part}/{number}" for number in range(8)}
    assert wanted - listed() == set()


async def test_every_field_that_is_listed_can_be_asked_for(tmp_path: Path) -> None:
    cluster = await harbour(tmp_path / "nodes")
    async with desk(cluster, tmp_path) as at:
        names = ",".join(sorted(listed()))
        await at.types(f"gnt-instance list -o {names}")
        told = await at.types("gnt-instance list-fields --no-headers --separator=:")
        assert {line.split(":")[0] for line in told.splitlines()} == listed()
        roman = await at.types("gnt-instance info --roman web1")
        assert "vcpus: default (I)" in roman
    await cluster.stop()
