# SPDX-License-Identifier: BSD-2-Clause
"""Names of instances are host names."""

from pathlib import Path

import pytest

from moorage.errors import BadInput
from moorage.testing.cluster import SimCluster


@pytest.fixture
async def cluster(tmp_path: Path):
    found = await SimCluster.start(tmp_path)
    yield found
    await found.stop()


FIELDS = {"disk_template": "diskless", "pnode": "node1"}


@pytest.mark.parametrize(
    "name",
    [
        "a..b",
        "123",
        "10.0.0.1",
        "a" * 64,
        ".a",
        "a.",
        "-a",
        "a-.b",
        "a_b",
        "",
        "ä",
        "a b",
        ".".join(["a" * 60] * 5),
    ],
)
async def test_what_is_no_host_name(cluster, name) -> None:
    error = await cluster.refused("OP_INSTANCE_CREATE", instance_name=name, **FIELDS)
    assert isinstance(error, BadInput)
    assert "is not an instance name" in error.message


@pytest.mark.parametrize("name", ["web1", "1a", "web2.example.com", "a" * 63, "x--y"])
async def test_what_is_one(cluster, name) -> None:
    await cluster.run("OP_INSTANCE_CREATE", instance_name=name, **FIELDS)
    assert cluster.config.instance(name).name == name


async def test_capitals_are_small_letters(cluster) -> None:
    await cluster.run("OP_INSTANCE_CREATE", instance_name="Web1.EXAMPLE.com", **FIELDS)
    assert cluster.config.instance("web1.example.com")
    error = await cluster.refused(
        "OP_INSTANCE_CREATE", instance_name="WEB1.example.com", **FIELDS
    )
    assert "exists already" in error.message
