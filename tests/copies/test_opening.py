# SPDX-License-Identifier: BSD-2-Clause
"""How a master comes to its store, and how it ends when the lead is lost."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.api.luxi_server import LuxiServer
from moorage.daemons import opening
from moorage.daemons.paths import MasterPlaces
from moorage.errors import Conflict
from moorage.store import MemoryStore
from moorage.store.etcd import EtcdSettings, engine, to_bytes

LONG = 60.0
HANGS = """
import logging, threading
from moorage.daemons import opening
class Stuck(logging.Handler):
    def emit(self, record):
        threading.Event().wait()
logging.getLogger().addHandler(Stuck())
opening._lead_lost("the lead is lost")
"""

ENDS = """
import sys
from pathlib import Path
from moorage.daemons import master
from moorage.daemons.paths import MasterPlaces
from moorage.errors import WrongState
from moorage.store import StoreLost
async def ends(places):
    raise {error}
master._run = ends
master.run(MasterPlaces(Path(sys.argv[1])))
"""


@pytest.mark.parametrize(
    "error", ["StoreLost('etcd refuses')", "WrongState('demoted', barred=True)"]
)
def test_who_loses_the_lead_at_the_takeover_is_started_again(
    tmp_path: Path, error: str
) -> None:
    places = MasterPlaces(tmp_path / "m")
    places.root.mkdir(mode=0o700)
    places.etcd.write_bytes(to_bytes(EtcdSettings(endpoints=("http://127.0.0.1:1",))))
    command = [sys.executable, "-c", ENDS.format(error=error), str(places.root)]
    done = subprocess.run(command, check=False, timeout=LONG)
    assert done.returncode == opening.STORE_LOST


class Outrun(MemoryStore):
    """A store of which somebody else has taken the lead at the same moment."""

    tried = 0

    async def lead(self) -> int:
        self.tried += 1
        if self.tried == 1:
            raise Conflict("the store moved on, or another master leads")
        return await super().lead()


async def test_who_is_outrun_goes_on_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Outrun()
    monkeypatch.setattr(opening, "store_at", lambda *_: store)
    server = LuxiServer(None, tmp_path / "luxi.sock")
    found = await opening.opened(MasterPlaces(tmp_path), server, asyncio.Event())
    assert found is not None
    assert store.tried == 2


def test_a_log_that_hangs_keeps_nobody_beyond_the_lead() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], check=False, timeout=LONG)
    assert done.returncode == opening.STORE_LOST


async def test_who_waits_makes_no_store_when_the_settings_are_moved_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PATIENCE", 0.2)
    places = MasterPlaces(tmp_path)
    settings = EtcdSettings(endpoints=("http://127.0.0.1:1",), lease=2)
    places.etcd.write_bytes(to_bytes(settings))
    server = LuxiServer(None, tmp_path / "luxi.sock")
    stopped = asyncio.Event()
    waiting = asyncio.create_task(opening.opened(places, server, stopped))
    await said(server)
    places.etcd.rename(tmp_path / "etcd.json.old")
    for _ in range(2):
        told = await said(server)
        assert "the master waits until it can write, for " in told
        assert "gives no answer" in told
    stopped.set()
    assert await waiting is None
    assert not places.store.exists()


async def said(server: LuxiServer) -> str:
    """Return why the master waits, the next time that it says so."""
    before = server.excuse
    for _ in range(int(LONG / 0.05)):
        await asyncio.sleep(0.05)
        if server.excuse is not before:
            return str(server.excuse())
    raise AssertionError("it says nothing")
