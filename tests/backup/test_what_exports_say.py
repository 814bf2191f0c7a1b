# SPDX-License-Identifier: BSD-2-Clause
"""An export that somebody wrote by hand decides nothing that was not asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

EVIL = {
    "kvm_extra": "-sandbox off -incoming 'exec:id > PWNED'",
    "security_model": "none",
    "kernel_path": "/etc/shadow",
    "initrd_path": "/etc/shadow",
    "cdrom_image_path": "/etc/shadow",
    "vnc_password_file": "/etc/shadow",
    "disk_cache": "unsafe",
    "boot_order": "cdrom",
}
AT = "node1:/sim/export/web1/manifest.json"


@pytest.fixture
async def cluster(tmp_path: Path) -> Any:
    found = await harbour(tmp_path)
    await found.run("OP_BACKUP_EXPORT", instance_name="web1")
    yield found
    await found.stop()


def rewrite(cluster: SimCluster, change: Callable[[dict[str, Any]], None]) -> None:
    """Let somebody who can write to the directory change the manifest."""
    file = cluster.nodes.san.files[AT]
    told = dict(json.decode(file["data"]))
    change(told)
    lay(cluster, json.encode(told).decode())


def lay(cluster: SimCluster, text: str) -> None:
    cluster.nodes.san.files[AT] = {"size": len(text), "data": text}


async def imported(cluster: SimCluster, **asked: Any) -> tuple[Any, list[str]]:
    """Import it; return the instance, and what was told."""
    made = {"instance_name": "web9", "mode": "import", "src_path": "web1"}
    job = await cluster.finished(
        await cluster.submit("OP_INSTANCE_CREATE", **made, start=False, **asked)
    )
    assert job.status == "success", job.ops[0].error
    return cluster.config.instance("web9"), [str(one[3]) for one in job.ops[0].log]


def evil(told: dict[str, Any]) -> None:
    told["instance"] |= {
        "hvparams": EVIL | {"acpi": False, "nic_type": "e1000"},
        "beparams": {"minmem": 256, "maxmem": 256, "vcpus": 2},
        "osparams": {"script": "$(id)"},
        "tags": ["exclusive"],
        "nics": [
            {
                "uuid": "u",
                "mac": "aa:00:00:99:00:01",
                "ip": "10.0.0.1",
                "nicparams": {"mode": "routed", "link": "main"},
            }
        ],
    }
    told["dumps"][1]["params"] |= {"dir": "/etc", "reuse_data": True}


async def test_a_manifest_takes_nothing_that_root_would_do(cluster: SimCluster) -> None:
    rewrite(cluster, evil)
    new, told = await imported(cluster)
    assert new.hvparams == {"acpi": False, "nic_type": "e1000"}
    assert new.beparams["vcpus"] == 2
    assert (new.osparams, new.tags) == ({}, ())
    (nic,) = new.nics
    assert (nic.mac, nic.ip, nic.nicparams) == ("aa:00:00:99:00:01", None, {})
    disk = cluster.config.disks_of(new)[1]
    assert disk.params == {"provider": "san"}
    text = "\n".join(told)
    for name in ("kvm_extra", "security_model", "kernel_path", "boot_order"):
        assert name in text
    for line in ("script", "exclusive", "ip, link, mode", "parameters of disk 1: dir"):
        assert line in text
    for option in ("-H kvm:", "-O ", "--tags", "--net 0:", "--disk 1:"):
        assert option in text
    assert "--trust-export" in text
    assert "exec:id" not in text


async def test_what_is_named_is_taken_and_not_told(cluster: SimCluster) -> None:
    rewrite(cluster, evil)
    asked = {"hvparams": {"disk_cache": "none"}, "tags": ("mine",)}
    cards = [{"ip": None, "mode": "bridged", "link": "br1"}]
    new, told = await imported(cluster, **asked, nics=cards)
    assert new.hvparams["disk_cache"] == "none"
    assert new.tags == ("mine",)
    assert new.nics[0].nicparams == {"mode": "bridged", "link": "br1"}
    assert not any("disk_cache" in one or "network card" in one for one in told)


async def test_who_trusts_an_export_gets_all_of_it(cluster: SimCluster) -> None:
    def ours(told: dict[str, Any]) -> None:
        evil(told)
        told["instance"]["hvparams"] = {"disk_cache": "none", "kernel_path": "/k"}
        told["instance"]["nics"][0]["nicparams"] = {"mode": "bridged", "link": "br1"}
        del told["dumps"][1]["params"]["dir"]

    rewrite(cluster, ours)
    new, told = await imported(cluster, trust_export=True)
    assert new.hvparams == {"disk_cache": "none", "kernel_path": "/k"}
    assert new.tags == ("exclusive",)
    assert new.nics[0].nicparams["link"] == "br1"
    assert not any("not taken" in one for one in told)
    params = cluster.config.disks_of(new)[1].params
    assert "reuse_data" not in params  # a restore writes over what is there


async def test_an_ordinary_export_leaves_nothing_out(cluster: SimCluster) -> None:
    _, told = await imported(cluster)
    assert not any("hypervisor parameters" in one for one in told)


async def test_no_script_of_an_os_runs_that_was_not_named(cluster: SimCluster) -> None:
    def scripted(told: dict[str, Any]) -> None:
        told["instance"]["os"] = "tiny"
        for dump in told["dumps"]:
            dump["form"] = "os"

    rewrite(cluster, scripted)
    made = {"instance_name": "web9", "mode": "import", "src_path": "web1"}
    error = await cluster.refused("OP_INSTANCE_CREATE", **made, start=False)
    assert "script" in error.message
    assert "-o OS" in error.hint
    new, _ = await imported(cluster, os_type="tiny")
    assert new.os == "tiny"


async def test_a_disk_alone_is_no_other_way_in(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_EXPORT", disk="spare", target_node="node1")
    at = "node1:/sim/export/disk+spare/manifest.json"
    told = dict(json.decode(cluster.nodes.san.files[at]["data"]))
    told["dumps"][0]["params"] |= {"dir": "/etc"}
    text = json.encode(told).decode()
    cluster.nodes.san.files[at] = {"size": len(text), "data": text}
    made = {"name": "again", "src_path": "disk+spare"}
    job = await cluster.finished(await cluster.submit("OP_DISK_IMPORT", **made))
    assert job.status == "success", job.ops[0].error
    assert any("dir" in str(entry[3]) for entry in job.ops[0].log)
    assert "dir" not in cluster.config.disk("again").params


def nested(levels: int) -> str:
    value = '{"a":' * levels + "1" + "}" * levels
    return '{"name":"web1","instance":{"name":"x","hvparams":' + value + "}}"


DUMP = '{"file":"x","form":"raw","size":1}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("\0\1\2" * 1000, "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        (nested(5000), "cannot be read"),
        (nested(20), "levels"),
        ('{"name":"web1","cluster":"' + "x" * (100 << 20) + '"}', "larger than"),
        ('{"name":"web1","dumps":[' + f"{DUMP}," * 64 + f"{DUMP}]}}", "more disks"),
        ('{"name":"web1","dumps":[' + DUMP.replace("x", "../x") + "]}", "name"),
        ('{"name":"web1","instance":{"name":"x","os":"a;rm -rf /"}}', "no OS"),
    ],
    ids=["empty", "noise", "deep", "deeper", "nested", "huge", "many", "out", "os"],
)
async def test_a_manifest_beyond_all_bounds_is_a_sentence(
    cluster: SimCluster, text: str, said: str
) -> None:
    lay(cluster, text)
    made = {"instance_name": "web9", "mode": "import", "src_path": "web1"}
    error = await cluster.refused("OP_INSTANCE_CREATE", **made, start=False)
    assert error.code == "bad-input"
    assert said in error.message
    assert len(error.message) < 500
