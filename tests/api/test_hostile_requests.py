# SPDX-License-Identifier: BSD-2-Clause
"""Requests over the master's socket that nobody should send: refused, and nothing made.

What an instance is made of ends in QEMU's arguments: no word of it may become another
option there.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_messages import END, encode_request
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.errors import BadInput, MoorageError, Refused
from moorage.testing.cluster import ClusterBuilder, SimCluster

WEB: dict[str, Any] = {
    "OP_ID": "OP_INSTANCE_CREATE",
    "instance_name": "web9",
    "disk_template": "diskless",
    "disks": [],
    "nics": [],
    "mode": "create",
    "pnode": "node1",
    "start": False,
}
DISK = {"OP_ID": "OP_DISK_ADD", "disk_template": "sharedfile", "size": 4, "name": "d"}
SLOW = ["=~", "name", "(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)" * 3 + "b"]


class Side:
    """A master with a socket."""

    def __init__(self, sim: SimCluster, path: Path) -> None:
        self.sim = sim
        self.path = path
        self.server = LuxiServer(Sources(sim.config_store, sim.nodes, sim.engine), path)

    async def call(self, method: str, *args: Any) -> Any:
        def ask() -> Any:
            with LuxiClient(str(self.path)) as client:
                return client.call(method, *args)

        return await asyncio.to_thread(ask)

    async def refusal(self, opcode: dict[str, Any]) -> MoorageError:
        """Submit a job that must be refused, at once or when it is decided."""
        before = self.sim.config
        try:
            job = await self.call("SubmitJob", [opcode])
        except Refused as error:
            return error
        found = await self.sim.engine.finished(int(job))
        assert found.status == "error"
        assert all(not op.tasks for op in found.ops)
        assert self.sim.config is before
        (told,) = (op.error for op in found.ops)
        assert told is not None
        assert told["code"] != "failed", told
        return BadInput(told["message"])


@pytest.fixture
async def side(tmp_path: Path) -> AsyncIterator[Side]:
    builder = ClusterBuilder().instance("a" * 40)
    sim = await SimCluster.start(tmp_path / "sim", builder)
    found = Side(sim, tmp_path / "luxi")
    await found.server.start()
    yield found
    await found.server.stop()
    await sim.stop()


@pytest.mark.parametrize(
    "fields",
    [
        {"nics": [{"mac": "aa:00:00:11:22:44,romfile=/etc/passwd"}]},
        {"nics": [{"mac": "aa:00:00:11:22:44\n"}]},
        {"nics": [{"mac": "zz"}]},
        {"nics": [{"link": "br0,helper=/bin/sh"}]},
        {"nics": [{"link": "-x"}]},
        {"nics": [{"link": "../x"}]},
        {"nics": [{}] * 9},
        {"nics": [{}] * 100_000},
        {"hvparams": {"machine_version": "q35,firmware=/etc/shadow"}},
        {"hvparams": {"cpu_type": "host,x=/etc/shadow"}},
        {"hvparams": {"cpu_type": "host -readconfig /etc/shadow"}},
        {"hvparams": {"accel": "tcg,tb-size=99999999"}},
        {"hvparams": {"serial_speed": "9600,x"}},
        {"hvparams": {"disk_cache": "none,aio=x"}},
        {"hvparams": {"kvm_extra": "'"}},
        {"hvparams": {"kvm_extra": "a\nb"}},
        {"hvparams": {"kernel_args": "a\x1b[2J"}},
        {"hvparams": {"kernel_path": ["x"]}},
        {"instance_name": "-rf"},
        {"instance_name": "a,id=x"},
        {"instance_name": "../../x"},
        {"instance_name": "x" * 5000},
        {"disk_template": "sharedfile", "disks": [{"size": 1}] * 10_000},
        {"disk_template": "sharedfile", "disks": [{"size": 1 << 70}]},
        {"disk_template": "sharedfile", "disks": [{"size": -1}]},
        {"beparams": {"maxmem": 1 << 70}},
        {"beparams": {"vcpus": -1}},
        {"beparams": {"maxmem": "1e999"}},
        {"tags": ["x" * 129]},
        {"tags": ["a b"]},
        {"tags": ["a\n\x1b[2J"]},
        {"tags": ["x"] * 5000},
    ],
    ids=lambda fields: " ".join(f"{key}={value}"[:40] for key, value in fields.items()),
)
async def test_no_word_of_an_instance_becomes_an_option(
    side: Side, fields: dict[str, Any]
) -> None:
    told = await side.refusal({**WEB, **fields})
    assert "internal error" not in told.message
    assert "\n" not in told.message


@pytest.mark.parametrize(
    "field", ["name", "disk_template", "comment", "provider", "params"]
)
@pytest.mark.parametrize("word", ["a\0b", "\ud800"], ids=["null", "half"])
async def test_what_no_program_takes_is_refused(
    side: Side, field: str, word: str
) -> None:
    value = {word: "x"} if field == "params" else word
    text = encode_request("SubmitJob", [[{**DISK, field: "@"}]]).decode()
    escaped = {"a\0b": '"a\\u0000b"', "\ud800": '"\\ud800"'}[word]
    if isinstance(value, dict):
        escaped = f"{{{escaped}: 1}}"
    before = side.sim.config
    reader, writer = await asyncio.open_unix_connection(str(side.path))
    writer.write(text.replace('"@"', escaped).encode())
    answer = await reader.readuntil(END)
    writer.close()
    await writer.wait_closed()
    assert b'"success":false' in answer.replace(b" ", b"")
    assert b"internal error" not in answer
    assert side.sim.config is before
    assert side.sim.engine.jobs == {}


async def test_a_pattern_does_not_keep_others_waiting(side: Side) -> None:
    with pytest.raises(BadInput, match="could take for ever"):
        await side.call("Query", "instance", ["name"], SLOW)
    with pytest.raises(BadInput, match="at most 2000 characters"):
        await side.call("Query", "instance", ["name"], ["=~", "name", "a" * 10_000_000])


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("Query", ("instance", ["name"] * 501, None)),
        ("QueryJobs", ([1] * 100_001, ["id"])),
        ("QueryJobs", ([1], ["id"] * 501)),
        ("SubmitJob", ([DISK] * 1001,)),
        ("SubmitManyJobs", ([[DISK]] * 20_001,)),
        ("QueryNodes", (None, ["name"] * 501, False)),
    ],
)
async def test_lists_have_an_end(side: Side, method: str, args: tuple[Any]) -> None:
    with pytest.raises(BadInput, match="length <="):
        await side.call(method, *args)
    assert side.sim.engine.jobs == {}
