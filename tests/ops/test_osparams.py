# SPDX-License-Identifier: BSD-2-Clause
"""OS parameters are looked at before anything is made, and when they change."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, NotFound, Refused
from moorage.model import Instance
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

CREATE, MODIFY = "OP_INSTANCE_CREATE", "OP_INSTANCE_SET_PARAMS"
DISK = {"size": 64, "dev_type": "sharedfile"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


async def create(cluster: SimCluster, **more: Any) -> Any:
    fields = {"instance_name": "new", "pnode": "node1", "disks": [DISK]}
    return await cluster.run(CREATE, **fields, os_type="tiny", **more)


async def test_unknown_ones_are_refused_at_birth(cluster: SimCluster) -> None:
    with pytest.raises(BadInput, match="OS 'tiny' has no parameter 'bogus'"):
        await create(cluster, osparams={"bogus": "1"})
    assert not cluster.config.knows(Instance, "new")


async def test_who_gave_one_that_is_unknown_is_told(cluster: SimCluster) -> None:
    bogus = {"tiny": {"bogus": "1"}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", osparams=bogus, force=True)
    with pytest.raises(BadInput, match="has no parameter 'bogus'") as caught:
        await create(cluster)
    assert caught.value.hint.endswith("gnt-os modify -O bogus=default tiny")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"osparams": {"tiny": {"bogus": "1"}}}, "has no parameter 'bogus'"),
        ({"osparams_private_cluster": {"tiny": {"x": "1"}}}, "no parameter 'x'"),
        ({"osparams": {"beos": {"k": "1"}}}, "no node has an OS 'beos': there is tiny"),
        ({"os_hvp": {"beos": {"kvm": {"acpi": True}}}}, "no node has an OS 'beos'"),
        ({"hidden_os": [["add", "beos"]]}, "no node has an OS 'beos'"),
        ({"blacklisted_os": [["add", "beos"]]}, "no node has an OS 'beos'"),
    ],
)
async def test_what_no_node_knows_is_refused(
    cluster: SimCluster, change: dict[str, Any], told: str
) -> None:
    before = cluster.config
    with pytest.raises(Refused, match=told):
        await cluster.run("OP_CLUSTER_SET_PARAMS", **change)
    assert cluster.config.cluster == before.cluster
    await cluster.run("OP_CLUSTER_SET_PARAMS", **change, force=True)


async def test_what_is_of_an_os_that_is_gone_can_be_dropped(
    cluster: SimCluster,
) -> None:
    change = {"osparams": {"beos": {"k": "1"}}, "hidden_os": [["add", "beos"]]}
    await cluster.run("OP_CLUSTER_SET_PARAMS", **change, force=True)
    gone = {"osparams": {"beos": {"k": "default"}}, "hidden_os": [["remove", "beos"]]}
    await cluster.run("OP_CLUSTER_SET_PARAMS", **gone)
    assert (cluster.config.cluster.osparams, cluster.config.cluster.hidden_os) == (
        {},
        (),
    )


async def test_the_os_looks_at_them_before_a_disk_is_made(cluster: SimCluster) -> None:
    cluster.nodes.calls.clear()
    await create(cluster)
    verbs = [verb for _, verb in cluster.nodes.calls]
    assert verbs.index("os.verify") < verbs.index("disk.create")
    assert verbs.index("disk.create") < verbs.index("os.create")


async def test_they_are_looked_at_when_they_change(cluster: SimCluster) -> None:
    await create(cluster)
    with pytest.raises(BadInput, match="OS 'tiny' has no parameter 'bogus'"):
        await cluster.run(MODIFY, instance_name="new", osparams={"bogus": "1"})
    with pytest.raises(NotFound, match="has no OS 'beos'"):
        await cluster.run(MODIFY, instance_name="new", os_name="beos")
    cluster.nodes.calls.clear()
    await cluster.run(MODIFY, instance_name="new", os_name="tiny")
    assert "os.verify" in [verb for _, verb in cluster.nodes.calls]


@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        ("OP_CLUSTER_SET_PARAMS", {"hvparams": {"kvm": {"soundhw": "ac97"}}}),
        (MODIFY, {"instance_name": "web1", "hvparams": {"soundhw": "ac97"}}),
        (
            CREATE,
            {
                "instance_name": "new",
                "pnode": "node1",
                "disks": [DISK],
                "hvparams": {"soundhw": "ac97"},
            },
        ),
    ],
)
async def test_a_hypervisor_parameter_without_effect_is_refused(
    cluster: SimCluster, op_id: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(BadInput, match="soundhw=ac97 cannot be honoured: there is no"):
        await cluster.run(op_id, **fields)


@pytest.mark.parametrize("value", [{"use_chroot": "true"}, {"kvm_extra": "'"}])
@pytest.mark.parametrize("op_id", ["OP_CLUSTER_SET_PARAMS", MODIFY, CREATE])
async def test_one_that_cannot_be_honoured_is_refused_wherever_it_is_set(
    cluster: SimCluster, op_id: str, value: dict[str, str]
) -> None:
    about = {
        "OP_CLUSTER_SET_PARAMS": {"hvparams": {"kvm": value}},
        MODIFY: {"instance_name": "web1", "hvparams": value},
        CREATE: {
            "instance_name": "new",
            "pnode": "node1",
            "disks": [DISK],
            "hvparams": value,
        },
    }
    with pytest.raises(BadInput, match=next(iter(value))):
        await cluster.run(op_id, **about[op_id])
