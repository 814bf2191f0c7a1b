# SPDX-License-Identifier: BSD-2-Clause
"""What Ganeti's own clients ask for by name is there: fields, keys, the queue."""

from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .harbour import Harbour, harbour


@pytest.fixture
def at(typed: Any) -> Iterator[Harbour]:
    with harbour(typed) as found:
        yield found


NODE_FIELDS = """
bootid cnodes cnos csockets ctime ctotal custom_ndparams dfree disk_state
drained dtotal group group.uuid hv_state master master_candidate master_capable mfree
mnode mtime mtotal name ndparams offline pinst_cnt pinst_list pip powered role serial_no
sinst_cnt sinst_list sip spfree sptotal tags uuid vm_capable"""
GROUP_FIELDS = """alloc_policy ctime custom_diskparams custom_ipolicy custom_ndparams
diskparams ipolicy mtime name ndparams node_cnt node_list pinst_cnt pinst_list serial_no
tags uuid"""
NDP = """cpu_speed exclusive_storage oob_program ovs ovs_link ovs_name spindle_count
ssh_port"""
JOB_FIELDS = """archived end_ts id opend opexec oplog oppriority opresult ops opstart
opstatus priority received_ts start_ts status summary"""


@pytest.mark.parametrize(
    ("program", "fields"),
    [
        ("gnt-node", f"{NODE_FIELDS} {' '.join(f'ndp/{x}' for x in NDP.split())}"),
        ("gnt-group", f"{GROUP_FIELDS} {' '.join(f'ndp/{x}' for x in NDP.split())}"),
        ("gnt-job", JOB_FIELDS),
    ],
)
def test_every_field_of_ganetis_is_listed_and_can_be_asked_for(
    at: Harbour, program: str, fields: str
) -> None:
    shown = at.types(f"{program} list-fields --no-headers --separator=:")
    assert set(fields.split()) <= {line.split(":")[0] for line in shown.splitlines()}
    at.types(f"{program} list -o {','.join(fields.split())}")


CLUSTER_KEYS = """Cluster name|Cluster UUID|Creation time|Modification time|Master node
Architecture (this node)|Tags|Default hypervisor|Enabled hypervisors
Hypervisor parameters|OS-specific hypervisor parameters|OS parameters|Hidden OSes
Blacklisted OSes|Cluster parameters|Default node parameters|Default instance parameters
Default nic parameters|Default disk parameters|Instance policy - limits for instances"""
CLUSTER_PARAMETERS = """\
candidate pool size|maximal number of jobs running simultaneously
mac prefix|master netdev|master netmask|lvm volume group|lvm reserved volumes
drbd usermode helper|file storage path|shared file storage path|gluster storage path
maintenance of node health|uid pool|default instance allocator|primary ip version
preallocation wipe disks|ExtStorage Providers search path|enabled disk templates
install image|instance communication network|zeroing image|compression tools
enabled user shutdown|modify ssh setup"""


def test_info_has_ganetis_keys(at: Harbour) -> None:
    told = yaml.safe_load(at.types("gnt-cluster info"))
    assert set(CLUSTER_KEYS.replace("\n", "|").split("|")) <= told.keys()
    wanted = set(CLUSTER_PARAMETERS.replace("\n", "|").split("|"))
    assert wanted <= told["Cluster parameters"].keys()
    (node,) = yaml.safe_load(at.types("gnt-node info node1"))
    keys = "Node name|primary ip|secondary ip|master candidate|drained|offline|powered"
    more = "master_capable|vm_capable|primary for instances|node parameters"
    assert {*keys.split("|"), *more.split("|")} <= node.keys()
    (group,) = yaml.safe_load(at.types("gnt-group info default"))
    assert {"Node group", "Node parameters", "Disk parameters"} <= group.keys()
    assert "Instance policy" in group


def test_a_group_is_emptied_as_far_as_its_disks_allow(at: Harbour) -> None:
    assert "there is no other node group" in at.refuses("gnt-group evacuate -f default")
    at.types("gnt-group add far")
    at.types("gnt-group assign-nodes far node1")
    told = at.refuses("gnt-group evacuate -f --to far default")
    assert "disk root" in told  # of web1: it stays on its node
    config = at.cluster.config
    homes = {name: config.instance(name).primary_node for name in ("web1", "web2")}
    assert homes == {"web1": "node2", "web2": "node1"}
    told = at.refuses("gnt-group evacuate -f --to far far")
    assert "cannot go to itself" in told


def test_the_queue_is_tried(at: Harbour) -> None:
    shown = at.types("gnt-debug test-jobqueue").splitlines()
    assert [line for line in shown if "as it should be" in line] == [
        "a job: as it should be",
        "a job after another: as it should be",
        "a job that is cancelled: as it should be",
    ]


@pytest.mark.parametrize("each", ["", "--each "])
def test_jobs_from_a_file_so_many_times(at: Harbour, tmp_path: Path, each: str) -> None:
    path = tmp_path / "job"
    path.write_text('[{"OP_ID": "OP_TEST_DELAY", "duration": 0}]')
    flags = f"{each}--op-repeat 2 --job-repeat 3 --timing-stats"
    shown = at.types(f"gnt-debug submit-job {flags} {path}")
    assert "C:job    3\n" in shown
    assert at.cluster.nodes.calls.count(("node1", "delay")) == 6
    assert "is not a number from 1" in at.refuses(
        f"gnt-debug submit-job --op-repeat 0 {path}"
    )


def test_lists_and_maps_are_printed_as_python_writes_them(at: Harbour) -> None:
    names = (
        *("hvparams", "beparams", "osparams", "custom_hvparams", "custom_nicparams"),
        *("disk.names", "disk.uuids", "disk.spindles", "nic.names", "nic.vlans"),
    )
    typed = f"gnt-instance list --no-headers --separator=| -o {','.join(names)} web1"
    cells = at.types(typed).rstrip("\n").split("|")
    told = {name: literal_eval(one) for name, one in zip(names, cells, strict=True)}
    assert told["hvparams"]["acpi"] is True
    assert told["hvparams"]["serial_speed"] == 38400
    assert told["hvparams"]["spice_use_tls"] is False  # filled, though nothing reads it
    assert told["disk.names"] == ["root"]
    flag = at.types("gnt-instance list --no-headers -o hv/acpi,hv/pae web1")
    assert flag.split() == ["Y", "-"]
    nodes = at.types("gnt-node list --no-headers -o ndparams node1")
    assert literal_eval(nodes)["exclusive_storage"] is False
    (groups,) = at.types("gnt-group list --no-headers -o ndparams").splitlines()
    assert "exclusive_storage=False" in groups
