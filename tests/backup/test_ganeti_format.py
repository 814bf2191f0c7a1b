# SPDX-License-Identifier: BSD-2-Clause
"""Exports that Ganeti wrote are imported, and ours are what it reads."""

import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput
from moorage.model.export import Form
from moorage.storage.exports_ini import from_ini
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

WRITTEN = """\
[export]
version = 0
timestamp = 1700000000
source = node9.example.com
os = tiny
compression = none

[instance]
name = old1.example.com
maxmem = 512
minmem = 256
memory = 512
vcpus = 2
disk_template = plain
hypervisor = kvm
tags = a b
nic0_mac = aa:00:00:11:22:33
nic0_ip = None
nic0_mode = bridged
nic0_link = br0
nic0_vlan =
nic_count = 1
disk0_ivname = disk/0
disk0_dump = b1c2.disk0.snap
disk0_size = 128
disk0_name = None
disk_count = 1

[hypervisor]
acpi = True
kernel_path =
vnc_bind_address = 0.0.0.0

[backend]
auto_balance = True
maxmem = 512
minmem = 256
vcpus = 2

[os]
"""


def test_what_ganeti_wrote_is_read() -> None:
    export = from_ini("old1", WRITTEN)
    told = export.instance
    assert told
    assert (told.name, told.os, told.tags) == ("old1.example.com", "tiny", ("a", "b"))
    assert told.beparams["vcpus"] == 2
    assert told.nics[0].mac == "aa:00:00:11:22:33"
    assert told.nics[0].ip is None
    (dump,) = export.dumps
    assert (dump.file, dump.form, dump.size) == ("b1c2.disk0.snap", Form.OS, 128)


_NO_TIME = ("nan", "-inf", "1e999")
"""Numbers that no answer can carry: the list of all exports of the node was lost."""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no ini",
        WRITTEN.replace("version = 0", "version = 9"),
        WRITTEN.replace("disk_count = 1", "disk_count = 2"),
        WRITTEN.replace("disk0_size = 128", "disk0_size = large"),
        *(re.sub("timestamp = .*", f"timestamp = {one}", WRITTEN) for one in _NO_TIME),
    ],
)
def test_what_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        from_ini("old1", text)


@pytest.fixture
async def cluster(tmp_path: Path) -> Any:
    found = await harbour(tmp_path)
    yield found
    await found.stop()


def lay(cluster: SimCluster, name: str, text: str) -> None:
    """Lay an export of Ganeti's on node2."""
    at = f"node2:/sim/export/{name}"
    files = cluster.nodes.san.files
    files[f"{at}/config.ini"] = {"size": len(text), "data": text}
    files[f"{at}/b1c2.disk0.snap"] = {"size": 4096, "data": "what the script said"}


async def test_a_rate_that_an_oss_script_does_not_heed_is_refused(
    cluster: SimCluster,
) -> None:
    """Where dumps travel, they do so at the rate."""
    lay(cluster, "old1.example.com", WRITTEN)
    made = {"instance_name": "old1.example.com", "mode": "import", "rate": 5}
    made |= {"os_type": "tiny", "start": False}
    error = await cluster.refused("OP_INSTANCE_CREATE", **made, pnode="node2")
    assert "no rate has an effect" in error.message
    await cluster.run("OP_INSTANCE_CREATE", **made, pnode="node1")

    name = "old1.example.com"
    how = {"instance_name": name, "format": "ganeti", "rate": 5}
    error = await cluster.refused("OP_BACKUP_EXPORT", **how)
    assert "the scripts of OS tiny" in error.message
    await cluster.run("OP_BACKUP_EXPORT", **how | {"rate": 0})


async def test_an_export_of_ganetis_becomes_an_instance(cluster: SimCluster) -> None:
    lay(cluster, "old1.example.com", WRITTEN)
    made = {"instance_name": "old1.example.com", "mode": "import", "pnode": "node2"}
    job = await cluster.finished(
        await cluster.submit(
            "OP_INSTANCE_CREATE",
            **made,
            disk_template="sharedfile",
            start=False,
            trust_export=True,
        )
    )
    assert job.status == "success", job.ops[0].error
    assert any("no checksums" in str(entry[3]) for entry in job.ops[0].log)
    new = cluster.config.instance("old1.example.com")
    assert (new.primary_node, new.os, new.tags) == ("node2", "tiny", ("a", "b"))
    assert new.beparams["vcpus"] == 2
    assert (new.hvparams["vnc_bind_address"], new.hvparams["vga"]) == ("", "std")
    assert any("has no port here" in str(entry[3]) for entry in job.ops[0].log)
    assert new.nics[0].mac == "aa:00:00:11:22:33"
    (disk,) = cluster.config.disks_of(new)
    assert (disk.dev_type, disk.size) == ("sharedfile", 128)
    held = cluster.nodes.san.files[disk.volume]["data"]
    assert held == "what the script said"
    ran = cluster.nodes.nodes["node2"].machine.ran
    (script,) = [one for one in ran if one.argv[0].endswith("/import")]
    assert script.env["IMPORT_DEVICE"] == script.env["IMPORT_DISK_PATH"] == disk.volume
    assert script.env["IMPORT_INDEX"] == "0"


async def test_a_dump_outside_of_its_export_is_not_read(cluster: SimCluster) -> None:
    evil = WRITTEN.replace("b1c2.disk0.snap", "../../etc/shadow")
    lay(cluster, "old1.example.com", evil)
    made = {"instance_name": "old1.example.com", "mode": "import"}
    error = await cluster.refused(
        "OP_INSTANCE_CREATE", **made, disk_template="sharedfile"
    )
    assert "not the name of an export" in error.message


async def test_what_is_written_for_ganeti(cluster: SimCluster) -> None:
    new = {"instance_name": "os1", "pnode": "node1", "os_type": "tiny"}
    disks = [{"size": 64, "dev_type": "sharedfile", "name": "r"}]
    nics = [{"mac": "aa:00:00:44:55:66"}]
    await cluster.run(
        "OP_INSTANCE_CREATE", **new, disks=disks, nics=nics, start=False, tags=("t",)
    )
    await cluster.run("OP_BACKUP_EXPORT", instance_name="os1", format="ganeti")
    files = cluster.nodes.san.files
    parser = ConfigParser(interpolation=None)
    parser.read_string(files["node1:/sim/export/os1/config.ini"]["data"])
    assert dict(parser["export"]) | {"timestamp": ""} == {
        "version": "0",
        "timestamp": "",
        "source": "node1",
        "os": "tiny",
        "compression": "none",
    }
    told = parser["instance"]
    assert told["name"] == "os1"
    assert told["disk_template"] == "sharedfile"
    assert (told["disk0_size"], told["disk0_name"]) == ("64", "r")
    assert told["nic0_mac"] == "aa:00:00:44:55:66"
    assert told["memory"] == told["maxmem"] == parser["backend"]["maxmem"]
    assert f"node1:/sim/export/os1/{told['disk0_dump']}" in files
    again = from_ini("os1", files["node1:/sim/export/os1/config.ini"]["data"])
    assert again.instance
    assert again.instance.tags == ("t",)
