# SPDX-License-Identifier: BSD-2-Clause
"""Members of etcd: they die and come back, and whom they let in."""

import asyncio
import base64
import signal
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.store import StoreError, Write
from moorage.store.etcd import EtcdSettings, EtcdStore, engine, layout, troubles
from support.etcd_members import KEYS, draw_keys, members

pytestmark = pytest.mark.real


async def test_members_die_and_come_back_under_a_writer() -> None:
    with members() as found:
        settings = EtcdSettings(endpoints=tuple(found.clients), cluster="a", lease=20)
        store = EtcdStore(settings)
        await store.lead()
        version = 0

        async def some(commits: int) -> None:
            nonlocal version
            for _ in range(commits):
                writes: list[Write] = [(("job", str(version)), b"x" * 1000)]
                version = await store.commit(writes, expected=version)

        await some(5)
        first = found.leader()
        assert first is not None
        found.signal(first, signal.SIGKILL)
        await some(20)
        second = (first + 1) % 3
        found.signal(second, signal.SIGSTOP)
        waiting = asyncio.create_task(some(5))
        done, _ = await asyncio.wait([waiting], timeout=1.0)
        assert not done  # one of three stores nothing
        found.start(first)
        await waiting
        found.signal(second, signal.SIGCONT)
        await some(20)
        stored = await store.load()
        assert stored.version == version == len(stored.records) == 50
        await store.close()


async def test_etcd_is_reached_by_tls_and_with_a_password() -> None:
    with members(1, tls=True) as found:
        asked = partial(found.ask, 0)
        for name in ("root", "moorage"):
            asked("auth/user/add", {"name": name, "password": f"of {name}"})
            asked("auth/role/add", {"name": name})
            asked("auth/user/grant", {"user": name, "role": name})
        first = b"/moorage/"
        room = {
            "permType": "READWRITE",
            "key": base64.b64encode(first).decode(),
            "range_end": base64.b64encode(layout.behind(first)).decode(),
        }
        asked("auth/role/grant", {"name": "moorage", "perm": room})
        asked("auth/enable", {})
        ca, _, client, key = (str(found.directory / f"{one}.pem") for one in KEYS)
        given = EtcdSettings(
            endpoints=tuple(found.clients),
            ca=ca,
            certificate=client,
            key=key,
            user="moorage",
            password="of moorage",  # noqa: S106 - of this test
            cluster="a",
        )
        store = EtcdStore(given)
        assert await store.lead() == 1
        assert await store.commit([(("job", "1"), b"a")], expected=0) == 1
        store._members()._token = "one that has run out.1"  # noqa: S105
        assert await store.commit([(("job", "1"), b"b")], expected=1) == 2
        assert (await store.load()).records == {("job", "1"): b"b"}
        await store.close()
        assert await troubles(given) == []
        wrong = {
            "no password": replace(given, user="", password=""),
            "another password": replace(given, password="x"),  # noqa: S106
            "another prefix": replace(given, prefix="/other"),
        }
        for what, settings in wrong.items():
            store = EtcdStore(settings)
            with pytest.raises(StoreError, match="refuses") as caught:
                await store.lead()
            assert "of moorage" not in caught.value.message, what
            await store.close()


@pytest.mark.parametrize("lacks", ["the client's certificate", "the right authority"])
async def test_without_the_right_keys_nobody_is_asked(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PATIENCE", 2.0)
    with members(1, tls=True) as found:
        at = found.directory
        if lacks == "the right authority":
            draw_keys(at := tmp_path)
        ca, _, client, key = (str(at / f"{one}.pem") for one in KEYS)
        shown = {} if at == found.directory else {"certificate": client, "key": key}
        given = EtcdSettings(endpoints=tuple(found.clients), ca=ca, **shown)
        store = EtcdStore(given)
        with pytest.raises(StoreError, match="gives no answer"):
            await store.lead()
        await store.close()
