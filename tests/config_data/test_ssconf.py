# SPDX-License-Identifier: BSD-2-Clause
"""The ssconf files: what Ganeti would write of the same cluster."""

import json
from pathlib import Path

import pytest

from ganetis_files import Ganeti
from moorage.config_data import Version, exported, ssconf
from moorage.testing.cluster import ClusterBuilder, SimCluster

ADDRESS = {
    "master_ip": "203.0.113.9",
    "master_netdev": "br0",
    "master_netmask": 24,
}

KVM = "hvparams_kvm"
_OURS = {"release_version"}
"""Files of which Moorage's word is another one."""


def halves(line: str) -> tuple[str, str]:
    name, _, value = line.partition("=")
    return name, value


@pytest.mark.oracle
async def test_they_are_what_ganeti_would_write(tmp_path: Path, ganeti: Ganeti) -> None:
    builder = ClusterBuilder(4).instance("web10").instance("web9", tags=("b", "a"))
    sim = await SimCluster.start(tmp_path / "sim", builder)
    for op_id, fields in (
        ("OP_CLUSTER_SET_PARAMS", {"nicparams": {"link": "br0"}}),
        ("OP_TAGS_SET", {"kind": "cluster", "name": "", "tags": ["z", "a"]}),
        ("OP_NETWORK_ADD", {"network_name": "net1", "network": "198.51.100.0/24"}),
        ("OP_GROUP_ADD", {"group_name": "rack2"}),
        ("OP_CLUSTER_SET_PARAMS", {"hvparams": {"kvm": {"acpi": False}}}),
        ("OP_CLUSTER_SET_PARAMS", {"uid_pool": [[30000, 30009], [40000, 40000]]}),
        ("OP_NODE_SET_PARAMS", {"node_name": "node4", "offline": True}),
        ("OP_CLUSTER_SET_PARAMS", ADDRESS),
    ):
        await sim.run(op_id, **fields)
    file = tmp_path / "config.data"
    document = exported(sim.config, Version(3, 0)).document
    file.write_text(json.dumps(document))
    theirs, ours = ganeti.ssconf(file), ssconf(sim.config)
    others = {"chroot", "fake", "lxc", "xen-hvm", "xen-pvm"}
    assert theirs.keys() - ours.keys() == {f"hvparams_{name}" for name in others}
    parameters = [
        dict(map(halves, one.pop(KVM).splitlines())) for one in (theirs, ours)
    ]
    assert parameters[0].keys() <= parameters[1].keys()
    assert [one["acpi"] for one in parameters] == ["False", "False"]
    differing = {
        name
        for name, text in theirs.items()
        if name in ours and sorted(text.splitlines()) != sorted(ours[name].splitlines())
    }
    assert {name: (theirs[name], ours[name]) for name in differing - _OURS} == {}
    assert ours["instance_list"] == theirs["instance_list"] == "web9\nweb10"
    await sim.stop()
