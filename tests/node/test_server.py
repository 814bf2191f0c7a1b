# SPDX-License-Identifier: BSD-2-Clause
"""The agent on the network: requests, broken ones, fences, and callers that die."""

import asyncio
import errno
import logging
from typing import Any

import aiohttp
import pytest
from msgspec import json

from moorage.errors import NotFound, Stale
from moorage.model import Disk
from moorage.node.calling.client import HttpNodes
from moorage.protocol import (
    AttachDisk,
    CloseDisk,
    CreateDisk,
    DetachDisk,
    GetFacts,
    OnDisk,
    RemoveDisk,
    StopGuest,
)
from moorage.units import Mib

pytestmark = pytest.mark.memory


def silent(*_: Any) -> None:
    pass


@pytest.fixture
async def nodes(served: Any) -> Any:
    found = HttpNodes(served.authority)
    yield found
    await found.close()


def session(served: Any) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=served.authority.asking())
    return aiohttp.ClientSession(connector=connector)


async def posted(served: Any, data: Any, **more: Any) -> tuple[int, list[Any]]:
    """Return the status, and the lines of the answer."""
    url = f"https://127.0.0.1:{served.port}/call"
    async with (
        session(served) as master,
        master.post(url, data=data, server_hostname=served.name, **more) as answer,
    ):
        text = await answer.read()
        return answer.status, [json.decode(line) for line in text.splitlines()]


def disk(epoch: int = 1) -> Disk:
    return Disk(
        uuid="d",
        name="d",
        dev_type="ext",
        logical_id=("san", "vol-d"),
        params={"provider": "san"},
        size=Mib(64),
        epoch=epoch,
    )


GOOD = {"verb": "facts", "args": {}, "term": 1}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the request is not JSON"),
        (b"\xff\xfe", "the request is not JSON"),
        (b"{", "the request is not JSON"),
        (b"[]", "the request is no call"),
        (b'"facts"', "the request is no call"),
        (b"{}", "the request is no call"),
        (json.encode(GOOD | {"verb": None}), "the request is no call"),
        (json.encode(GOOD | {"term": "late"}), "the request is no call"),
        (json.encode(GOOD | {"term": True}), "the request is no call"),
        (json.encode(GOOD | {"term": -1}), "the request is no call"),
        (json.encode(GOOD | {"term": 1 << 200}), "the request is no call"),
        (json.encode(GOOD | {"args": []}), "the request is no call"),
        (json.encode(GOOD | {"verb": "rm"}), "the agent has no verb 'rm'"),
        (json.encode(GOOD | {"args": {"brief": 7}}), "facts: "),
        (json.encode(GOOD | {"verb": "disk.create"}), "disk.create: "),
        (json.encode(GOOD | {"verb": "guest", "args": {"uuid": []}}), "guest: "),
    ],
)
async def test_a_malformed_request_gets_one_clear_error(
    served: Any, body: bytes, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    status, (line,) = await posted(served, body)
    assert status == 200
    assert line["error"]["code"] == "bad-input"
    assert line["error"]["message"].startswith(sentence)
    assert "\n" not in line["error"]["message"]
    assert "Traceback" not in caplog.text
    assert (await posted(served, json.encode(GOOD)))[1][0].keys() == {"result"}


async def test_what_is_no_call_is_not_served(served: Any) -> None:
    root = f"https://127.0.0.1:{served.port}"
    async with session(served) as master:
        for method, path, status in (("GET", "/call", 405), ("POST", "/", 404)):
            url = f"{root}{path}"
            asked = master.request(method, url, server_hostname=served.name)
            async with asked as answer:
                assert answer.status == status


async def test_a_request_that_is_too_large_is_refused(served: Any) -> None:
    async def flood() -> Any:
        for _ in range(65):
            yield bytes(1 << 20)

    url = f"https://127.0.0.1:{served.port}/call"
    name = served.name
    try:
        async with (
            session(served) as master,
            master.post(url, data=flood(), server_hostname=name) as answer,
        ):
            status = answer.status
    except aiohttp.ClientOSError:  # the node hung up before all of it had come
        status = 413
    assert status == 413
    assert (await posted(served, json.encode(GOOD)))[0] == 200


async def test_errors_keep_their_kind_and_facts(served: Any, nodes: Any) -> None:
    _, (told,) = await posted(served, json.encode(GOOD | {"verb": "rm"}))
    assert told["error"]["message"] == "the agent has no verb 'rm'"
    assert "facts" in told["error"]["facts"]["known"]
    call = StopGuest(uuid="u", hypervisor="xen")
    with pytest.raises(NotFound, match="node node1 has no hypervisor 'xen'"):
        await nodes.call(served.node, call, 1, silent)


async def test_a_master_of_an_earlier_term_is_refused(served: Any, nodes: Any) -> None:
    await nodes.call(served.node, GetFacts(), 5, silent)
    for call in (GetFacts(), CreateDisk(disk=disk())):
        with pytest.raises(Stale, match="a master of term 5 has spoken") as caught:
            await nodes.call(served.node, call, 4, silent)
        assert caught.value.facts == {"term": 4, "seen": 5}
    await nodes.call(served.node, GetFacts(), 6, silent)


async def test_a_term_that_ends_while_a_step_waits_its_turn(
    served: Any, nodes: Any
) -> None:
    served.machine.go_on.clear()
    create = CreateDisk(disk=disk())
    first = asyncio.create_task(nodes.call(served.node, create, 1, silent))
    await served.machine.started.wait()
    second = asyncio.create_task(nodes.call(served.node, create, 1, silent))
    await nodes.call(served.node, GetFacts(), 2, silent)
    served.machine.go_on.set()
    await first  # it had begun before the new master spoke
    with pytest.raises(Stale, match="term 1 is over"):
        await second


async def test_a_late_step_of_an_earlier_attach_is_refused(
    served: Any, nodes: Any
) -> None:
    async def ask(verb: type[OnDisk[Any]], epoch: int) -> Any:
        return await nodes.call(served.node, verb(disk=disk(epoch)), 1, silent)

    await ask(CreateDisk, 0)
    await ask(AttachDisk, 3)
    for verb in (DetachDisk, CloseDisk, AttachDisk, RemoveDisk):
        with pytest.raises(Stale, match="a step of epoch 2 is too late") as caught:
            await ask(verb, 2)
        assert caught.value.facts == {"disk": "d", "epoch": 2, "seen": 3}
    await ask(DetachDisk, 3)


async def test_an_agent_that_starts_again_knows_its_fences(
    served: Any, nodes: Any
) -> None:
    call = CreateDisk(disk=disk(4))
    await nodes.call(served.node, call, 7, silent)
    await served.stop()
    await served.start()
    with pytest.raises(Stale, match="a master of term 7 has spoken"):
        await nodes.call(served.node, GetFacts(), 6, silent)
    late = RemoveDisk(disk=disk(3))
    with pytest.raises(Stale, match="disk d is at epoch 4"):
        await nodes.call(served.node, late, 7, silent)


async def test_a_verb_goes_on_when_its_caller_dies(
    served: Any, nodes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """That nobody hears its answer is no defect of the agent's, and is not logged."""
    served.machine.go_on.clear()
    call = CreateDisk(disk=disk())
    caller = asyncio.create_task(nodes.call(served.node, call, 1, silent))
    await served.machine.started.wait()
    caller.cancel()
    await asyncio.wait({caller})
    await nodes.close()
    served.machine.go_on.set()
    again = HttpNodes(served.authority)
    look = CreateDisk(disk=disk())  # waits for the one under way
    await again.call(served.node, look, 2, silent)
    await again.close()
    assert len(served.machine.ran) == 2
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


async def test_a_verb_that_breaks_says_so_and_the_next_one_is_served(
    served: Any, nodes: Any
) -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("out of luck")

    served.machine.refuse = broken
    call = CreateDisk(disk=disk())
    with pytest.raises(Exception, match="internal error on the node: RuntimeError"):
        await nodes.call(served.node, call, 1, silent)
    await nodes.call(served.node, GetFacts(), 1, silent)


async def test_a_node_whose_own_disk_is_full_says_which_node_and_where(
    served: Any, nodes: Any
) -> None:
    def full(*_: Any) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device", "run/held/d1")

    served.machine.refuse = full
    with pytest.raises(Exception, match="node node1 cannot write") as error:
        await nodes.call(served.node, CreateDisk(disk=disk()), 1, silent)
    assert str(error.value).endswith("(run/held/d1): No space left on device")
    assert "make room" in error.value.hint  # type: ignore[attr-defined]
