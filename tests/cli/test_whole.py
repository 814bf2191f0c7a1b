# SPDX-License-Identifier: BSD-2-Clause
"""Commands typed at a real master, over its real socket, on simulated nodes."""

import asyncio
import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.testing.cluster import ClusterBuilder, SimCluster


def picture() -> ClusterBuilder:
    """Return a cluster with two instances, one with a disk, and a spare disk."""
    return (
        ClusterBuilder()
        .disk("root")
        .disk("data1")
        .instance("web1", "node1", ("root",))
        .instance("web2", "node2")
    )


async def serve(directory: Path, ready: threading.Event, done: threading.Event) -> None:
    cluster = await SimCluster.start(directory / "nodes", picture())
    sources = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    server = LuxiServer(sources, directory / "luxi.sock")
    await server.start()
    ready.set()
    await asyncio.to_thread(done.wait)
    await server.stop()
    await cluster.stop()


@pytest.fixture
def where() -> Iterator[dict[str, str]]:
    """Start a master; return the environment that finds it."""
    ready, done = threading.Event(), threading.Event()
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "nodes").mkdir()
        thread = threading.Thread(
            target=lambda: asyncio.run(serve(Path(directory), ready, done))
        )
        thread.start()
        assert ready.wait(10)
        yield {"MOORAGE_SOCKET": f"{directory}/luxi.sock"}
        done.set()
        thread.join(10)


@pytest.mark.requirement("S3-01", "S3-51", "S3-52", "S3-53", "S3-54")
def test_a_disk_from_birth_to_removal(typed, where) -> None:
    def types(line: str) -> str:
        screen = typed(line, **where)
        assert screen.status == 0, screen.err
        return screen.out

    assert "Added disk data9" in types("gnt-disk add -t ext -p san -s 1G data9")
    shown = types("gnt-disk list --no-headers -o name,size,status data9")
    assert shown == "data9 1.0G detached\n"
    types("gnt-disk attach data9 web1")
    types("gnt-disk grow data9 1G")
    (told,) = yaml.safe_load(types("gnt-disk info data9"))
    assert (told["Attached to"], told["Size"]) == ("web1 (disk/1)", "2.0G")
    (web1,) = yaml.safe_load(types("gnt-instance info web1"))
    assert [disk["name"] for disk in web1["Disks"]] == ["root", "data9"]
    out = types("gnt-instance modify --disk data9:detach web1")
    assert " - disk/1 -> detach\n" in out
    types("gnt-disk rename data9 data10")
    types("gnt-instance modify --disk attach,name=data10 web2")
    types("gnt-disk detach data10")
    types("gnt-disk grow data10 3G --absolute")
    types("gnt-disk modify --mode ro data10")
    shown = types("gnt-disk list --no-headers --separator=: -o size,mode data10")
    assert shown == "3072:ro\n"
    types("gnt-disk remove -f data10")
    assert types("gnt-disk list --no-headers -o name") == "data1\nroot\n"
    jobs = json.loads(types("gnt-job list --json"))
    assert {job["status"] for job in jobs} == {"success"}
    number = jobs[0]["id"]
    (first,) = yaml.safe_load(types(f"gnt-job info {number}"))
    assert first["Opcodes"][0]["Opcode"] == "OP_DISK_ADD"
    assert first["Opcodes"][0]["Tasks"]


@pytest.mark.requirement("S0-77", "S0-78", "S0-79")
def test_a_pool_has_one_name_and_a_provider_that_is_there(typed, where) -> None:
    line = "gnt-cluster modify --add-pool"
    assert typed(f"{line} nas1 san", **where).status == 0
    for pool, said in (
        ("nas1 plainsan", "there is a storage pool 'nas1' already"),
        ("nas3 nosuch", "no node has a valid ExtStorage provider 'nosuch'"),
    ):
        screen = typed(f"{line} {pool}", **where)
        assert (screen.status, said in screen.err) == (1, True)
    listed = typed("gnt-storage pool list --no-headers -o name,driver", **where)
    assert listed.out.split() == ["nas1", "san"]


@pytest.mark.requirement("S0-75", "S0-79", "S0-80", "S0-81", "S0-83", "S0-85", "S0-86")
def test_a_pool_from_birth_to_removal(typed, where) -> None:
    def types(line: str, status: int = 0) -> str:
        screen = typed(line, **where)
        assert screen.status == status, screen.err
        return screen.out if status == 0 else screen.err

    types("gnt-cluster modify --add-pool nas1 san --add-pool nas2=plainsan")
    told = yaml.safe_load(types("gnt-cluster info"))
    assert told["Cluster parameters"]["storage pools"] == {
        "nas1": "san",
        "nas2": "plainsan",
    }
    assert "is not connected" in types("gnt-disk add --pool nas1 -s 1G data9", 1)
    assert types("gnt-storage pool connect nas1 default") == (
        "Connected storage pool nas1 to default\n"
    )
    types("gnt-storage pool modify -D tier=ssd --volume-name {pool}-{short} nas1")
    types("gnt-disk add --pool nas1 -s 1G data9")
    types("gnt-instance modify --disk add:size=1G,pool=nas1,name=data8 web1")
    types("gnt-storage pool add-tags nas1 gold")
    assert types("gnt-storage pool list-tags nas1") == "gold\n"
    listed = types("gnt-storage pool list -o name,driver,groups,disk_cnt,size")
    assert listed == (
        "Pool Driver   NodeGroups Disks Size\n"
        "nas1 san      default        2 2.0G\n"
        "nas2 plainsan                0   0M\n"
    )
    one = "gnt-storage pool list --no-headers -o name --filter 'disk_cnt > 0'"
    assert types(one) == "nas1\n"
    (told,) = json.loads(types("gnt-storage pool list --json nas1"))
    assert (told["disk_cnt"], told["free"]) == (2, None)
    (told,) = yaml.safe_load(types("gnt-storage pool info nas1"))
    assert told["Parameters"] == {"tier": "ssd"}
    assert told["Disks"] == ["data8", "data9"]
    (told,) = yaml.safe_load(types("gnt-disk info data9"))
    assert told["Storage pool"] == "nas1"
    shown = types("gnt-disk list --no-headers -o name 'pool == \"nas1\"'")
    assert shown == "data8\ndata9\n"
    for line in (
        "gnt-storage pool remove -f nas1",
        "gnt-cluster modify --remove-pool nas1",
        "gnt-storage pool disconnect nas1 default",
    ):
        told = types(line, 1)
        assert "2 disks use it: data8 (web1), data9 (detached)" in told
    types("gnt-disk detach data8")
    types("gnt-disk remove -f data8")
    types("gnt-disk remove -f data9")
    types("gnt-storage pool disconnect nas1 default")
    types("gnt-storage pool remove -f nas1")
    types("gnt-cluster modify --remove-pool nas2")
    assert types("gnt-storage pool list --no-headers") == ""


def test_refusals_are_sentences(typed, where) -> None:
    def refused(line: str) -> str:
        screen = typed(line, **where)
        assert screen.status == 1
        assert "nothing was changed" in screen.err
        return screen.err

    typed("gnt-disk attach data1 web1", **where)
    assert "web1" in refused("gnt-disk attach data1 web2")
    assert "'nope' is not known" in refused("gnt-disk attach nope web2")
    assert "'nope' is not known" in refused("gnt-disk info nope")
    assert "'nope' is not known" in refused("gnt-instance list nope")
    assert refused("gnt-disk remove -f data1")
    assert refused("gnt-instance add -t ext --disk 0:size=1G -n node1 --no-install x")


def test_lists_and_plans(typed, where) -> None:
    screen = typed("gnt-instance list -o name,pnode,disk_template,status", **where)
    assert screen.err == ""
    assert screen.out == (
        "Instance Primary_node Disk_template Status\n"
        "web1     node1        ext           ADMIN_down\n"
        "web2     node2        diskless      ADMIN_down\n"
    )
    assert typed("gnt-node list", **where).status == 0
    assert typed("gnt-group list", **where).status == 0
    assert typed("gnt-debug locks", **where).status == 0
    assert typed("gnt-cluster getmaster", **where).out == "node1\n"
    assert yaml.safe_load(typed("gnt-cluster info", **where).out)
    for resource in ("node", "group", "instance", "disk"):
        assert yaml.safe_load(typed(f"gnt-{resource} info", **where).out or "[]") or (
            resource == "instance"
        )
    plan = typed("gnt-disk attach --dry-run data1 web2", **where).out
    assert plan.startswith("It would (nothing was changed):\n  1. ")
    detached = typed("gnt-disk list -o status --no-headers data1", **where)
    assert detached.out == "detached\n"


def test_lists_keep_the_order_of_their_operands(typed, where) -> None:
    for words in ("web2 web1", "web1 web2"):
        screen = typed(f"gnt-instance list --no-headers -o name {words}", **where)
        assert screen.out.split() == words.split()
    screen = typed("gnt-node list --no-headers -o name node3 node1 node2", **where)
    assert screen.out.split() == ["node3", "node1", "node2"]
    screen = typed("gnt-node list --no-headers -o name", **where)
    assert screen.out.split() == ["node1", "node2", "node3"]


def test_fields_are_shown_as_ganeti_does(typed, where) -> None:
    fields = "be/always_failover,be/auto_balance,be/spindle_use"
    line = f"gnt-instance list --no-headers --separator=: -o {fields} web1"
    assert typed(line, **where).out == "N:Y:1\n"
    typed("gnt-instance add -t diskless --no-start -n node1 web5", **where)
    nics = "nic.ips,nic.modes,nic.names,ip,nic.ip/0,nic.mode/0"
    shown = typed(f"gnt-instance list -o {nics} web5", **where)
    assert "None" not in shown.out
