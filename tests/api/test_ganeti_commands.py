# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's own ``gnt-*`` programs, unchanged, in a whole life over LUXI."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from desk import desk
from moorage.api.query import Sources
from moorage.daemons import master_address
from moorage.protocol import Said
from moorage.testing.cluster import ClusterBuilder, SimCluster
from peers import GANETI, PYTHON, ganetis_node, unpacked

# In memory: the paths of sockets must be short.
pytestmark = [pytest.mark.oracle, pytest.mark.memory]

RUNNER = Path(__file__).parents[1] / "ganeti_programs.py"
DATA = Path(__file__).parent / "data"
LIFE, LEFT_OUT = DATA / "ganeti-life.txt", DATA / "ganeti-left-out.txt"
PROGRAMS = tuple(
    f"gnt-{name}"
    for name in (
        *("instance", "node", "group", "job", "cluster"),
        *("os", "network", "storage", "backup"),
    )
)
_COMMAND = re.compile(r"^ ([a-z-]+) +- ", re.MULTILINE)
_OOB = {"power-status": '{"powered": true}', "health": '[["PSU0", "OK"]]'}
_BATCH = [
    {
        "instance_name": name,
        "os_type": "tiny",
        "disk_template": "ext",
        "disks": [{"size": "64M", "provider": "san"}],
        "nics": [],
        "mode": "create",
        "no_install": True,
    }
    for name in ("a1", "a2")
]


class Line(NamedTuple):
    """A command line of the life, and what it must say."""

    command: str
    succeeds: bool
    told: list[str]


class Ganeti(NamedTuple):
    """Where Ganeti's programs are typed."""

    process: asyncio.subprocess.Process
    cluster: SimCluster
    ours: Callable[[str], Awaitable[str]]

    async def __call__(self, command: str) -> tuple[int, str]:
        """Type a line; return the exit status, and what was printed."""
        line = json.dumps(shlex.split(command)).encode()
        self.process.stdin.write(line + b"\n")
        status, told = json.loads(await self.process.stdout.readline())
        return status, told


def life() -> Iterator[Line]:
    for text in LIFE.read_text().splitlines():
        if text.startswith("    "):
            line.told.append(text.strip())  # noqa: F821 - a line comes first
        elif text and not text.startswith("#"):
            line = Line(text[2:], text.startswith("$"), [])
            yield line


def left_out() -> set[str]:
    return {line.partition(":")[0] for line in LEFT_OUT.read_text().splitlines()}


@pytest.fixture
async def ganeti(tmp_path) -> AsyncIterator[Ganeti]:
    place = unpacked(GANETI)
    if place is None:
        pytest.skip("Debian's packages of Ganeti cannot be had")
    (tmp_path / "batch.json").write_text(json.dumps(_BATCH))
    cluster = await SimCluster.start(tmp_path / "sim", ClusterBuilder(4))
    administrators = cluster.nodes.nodes["node1"].machine.admin_scripts
    administrators["oob/ipmi"] = lambda words: Said(output=_OOB.get(words[0], ""))
    at = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    keeping = asyncio.create_task(master_address.keep(at))  # it takes longer than that
    hello = Said(output="hello from node1\n")
    administrators["restricted-commands/hello"] = lambda _words: hello
    async with desk(cluster, tmp_path) as ours:
        env = ganetis_node(place, tmp_path / "node1", tmp_path / "luxi.sock")
        process = await asyncio.create_subprocess_exec(
            *(PYTHON, RUNNER),
            env=env,
            cwd=tmp_path,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        yield Ganeti(process, cluster, ours.types)
        process.stdin.close()
        await process.wait()
    keeping.cancel()
    await cluster.stop()


@pytest.mark.requirement("S3-26")
async def test_a_life_by_ganetis_commands(ganeti):
    """Each command that is a query or a job; of the others a reason is on record."""
    address = {"master_ip": "198.51.100.9", "master_netdev": "br0"}
    await ganeti.cluster.run("OP_CLUSTER_SET_PARAMS", **address)
    for line in list(life()):
        status, told = await ganeti(line.command)
        assert (status == 0) == line.succeeds, f"{line.command}: {status}\n{told}"
        missing = [words for words in line.told if words not in told]
        assert not missing, f"{line.command}: {told}"
    known = {
        f"{program} {name}"
        for program in PROGRAMS
        for name in _COMMAND.findall((await ganeti(f"{program} --help"))[1])
    }
    ran = {" ".join(line.command.split()[:2]) for line in life()}
    assert len(known) > 100
    assert known - ran == left_out()


async def test_ganetis_verify_fails_where_something_is_wrong(ganeti):
    ganeti.cluster.nodes.nodes["node2"].lose_power()
    status, told = await ganeti("gnt-cluster verify")
    assert status == 1
    assert "node node2: it gives no answer" in told
    status, told = await ganeti("gnt-os diagnose")
    assert status == 1
    assert "Node: node2, status: invalid - no answer" in told


@pytest.mark.requirement("S3-02", "S3-32")
async def test_ganetis_programs_show_what_disks_of_their_own_are(ganeti):
    """Tags of disks, and an instance with disks of several templates."""
    disks = [{"size": 64, "provider": "san", "name": "data1"}]
    disks += [{"size": 64, "dev_type": "file"}]
    fields = {"instance_name": "web1", "disk_template": "ext", "disks": disks}
    await ganeti.cluster.run("OP_INSTANCE_CREATE", pnode="node1", nics=[], **fields)
    await ganeti.cluster.run("OP_TAGS_SET", kind="disk", name="data1", tags=["gold"])
    uuid = ganeti.cluster.config.disk("data1").uuid
    _, told = await ganeti("gnt-cluster search-tags gold")
    assert told == f"/disks/{uuid} gold\n"
    _, told = await ganeti("gnt-instance list --no-headers -o disk_template web1")
    assert told == "mixed\n"
    _, told = await ganeti("gnt-instance info web1")
    assert "disk/0: ext, size 64M" in told
    assert "disk/1: file, size 64M" in told


async def test_ganetis_verify_disks_lets_disks_be_attached_again(ganeti):
    """A node booted: the jobs that follow attach what it lost, and say so."""
    disks = [{"size": 64, "provider": "san"}, {"size": 64, "provider": "san"}]
    fields = {"disk_template": "ext", "disks": disks, "nics": [], "pnode": "node2"}
    await ganeti.cluster.run("OP_INSTANCE_CREATE", instance_name="web1", **fields)
    ganeti.cluster.nodes.cut_power("node2")
    ganeti.cluster.nodes.nodes["node2"].boot()
    status, told = await ganeti("gnt-cluster verify-disks")
    assert (status, "No disks need to be activated." in told) == (0, True), told
    held = await ganeti("gnt-instance info web1")
    assert held[1].count("on primary") == 2


def differing(theirs: Any, ours: Any, where: str = "") -> Iterator[str]:
    """Yield where something of theirs is not the same in ours, which may have more."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key, value in theirs.items():
            yield from differing(value, ours.get(key, "nothing"), f"{where}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        assert len(theirs) == len(ours), where
        for number, pair in enumerate(zip(theirs, ours, strict=True)):
            yield from differing(*pair, f"{where}/{number}")
    elif theirs != ours and not str(ours).startswith(f"{theirs} "):
        yield f"{where}: {theirs!r}, not {ours!r}"


@pytest.mark.parametrize(
    "line",
    [
        *("gnt-cluster info", "gnt-instance info web1"),
        *("gnt-group info default", "gnt-node info node1", "gnt-job info 2 3"),
    ],
)
async def test_what_info_commands_print_is_what_ganetis_print(ganeti, line):
    """The same lines, whoever prints them; those of Moorage's own come on top."""
    disks = [{"size": 64, "provider": "san"}, {"size": 64, "dev_type": "plain"}]
    disks += [{"size": 64, "dev_type": "drbd"}]
    fields = {"instance_name": "web1", "disk_template": "ext", "disks": disks}
    fields |= {"pnode": "node1", "snode": "node2", "os_type": "tiny", "nics": [{}]}
    await ganeti.cluster.run("OP_INSTANCE_CREATE", **fields, hvparams={"acpi": False})
    own = {"ipolicy": {"vcpu-ratio": 3.0}, "ndparams": {"spindle_count": 2}}
    await ganeti.cluster.run("OP_GROUP_SET_PARAMS", group_name="default", **own)
    assert (await ganeti("gnt-instance modify -B memory=128 nobody"))[0]
    status, theirs = await ganeti(line)
    assert status == 0
    told = yaml.safe_load(theirs), yaml.safe_load(await ganeti.ours(line))
    found = [one for one in differing(*told) if "search path" not in one]
    assert found == []  # but for the paths, which are of the machine at hand
