# SPDX-License-Identifier: BSD-2-Clause
"""A guest writes and reads while the cluster's state moves to etcd and back.

It runs in QEMU. Meanwhile clients add disks, a job runs and one waits that attaches or
detaches a disk of the guest's, the master is killed, and so is a move half way.
"""

import asyncio
import hashlib
import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.daemons import process
from moorage.testing.guest import Guest
from support.etcd_members import Members, members
from support.masters import Account

pytestmark = pytest.mark.real
LONG = 120.0
MOST = 16000
"""Stamps that its disk of 8 MiB has room for, each a block of 512 bytes."""
WRITER = """
n=0
while [ ! -e /tmp/end ] && [ $n -lt {most} ]; do
  printf '%-512s' "stamp $n" | dd of={disk} bs=512 seek=$n conv=notrunc,fsync
  echo 1 > /proc/sys/vm/drop_caches
  set -- $(dd if={disk} bs=512 skip=$n count=1)
  [ "$*" = "stamp $n" ] || echo "$n: $*" >> /tmp/wrong
  n=$((n + 1)); echo $n > /tmp/next; mv /tmp/next /tmp/written
  usleep 200000
done 2>/dev/null
touch /tmp/ended
"""


@pytest.fixture(scope="module")
def etcd() -> Iterator[Members]:
    with members() as found:
        yield found


class Writer:
    """What writes in the guest: stamp after stamp, each synced and read again."""

    def __init__(self, town: Any) -> None:
        self._town = town
        town.guest("web1", "node1", "-t sharedfile -s 8M --no-install")
        (self.disk,) = town.disks("web1")
        (row,) = town.ask("gnt-instance list -o uuid web1")
        self._channel = town.kvm("node1").channel(row["uuid"])
        script = WRITER.format(disk=town.device("web1", self.disk), most=MOST)
        self._inside(f"({script}) </dev/null >/dev/null 2>&1 &")
        assert process.wait_until(lambda: self.written() > 0, LONG)

    def _inside(self, command: str) -> str:
        """Run a command in the guest, whether there is a master or not."""

        async def run() -> str:
            async with Guest(self._channel) as guest:
                return await guest.run(command)

        return asyncio.run(run())

    def written(self) -> int:
        """Return how many stamps were written and read."""
        look = "cat /tmp/wrong 2>/dev/null; cat /tmp/written 2>/dev/null || echo 0"
        return int(self._inside(look))

    def goes_on(self) -> int:
        """Wait for a stamp that is written from now on; return how many there are."""
        before = self.written()
        assert process.wait_until(lambda: self.written() > before, LONG)
        return before

    def end(self) -> None:
        """Let it end, and read all its stamps once more, from the disk itself."""
        ended = "touch /tmp/end; while [ ! -e /tmp/ended ]; do usleep 50000; done"
        self._inside(ended)
        much = self.written()
        at = self._town.device("web1", self.disk)
        look = f"echo 3 > /proc/sys/vm/drop_caches; dd if={at} bs=512 count={much}"
        said = self._inside(f"({look} | sha256sum) 2>/dev/null")
        stamps = b"".join(b"%-512s" % f"stamp {n}".encode() for n in range(much))
        assert said.split()[0] == hashlib.sha256(stamps).hexdigest()


@pytest.fixture(scope="module")
def town(new_town: Callable[[int], Any]) -> Iterator[Any]:
    with new_town(1) as found:
        yield found


def test_a_guest_writes_while_the_state_moves(
    town: Any, etcd: Members, tmp_path: Path
) -> None:
    """Each stamp is there, each job ends, and what was acknowledged is there."""
    hosts = ", ".join(f'"{url}"' for url in etcd.clients)
    there = tmp_path / "etcd.json"
    there.write_text(f'{{"endpoints": [{hosts}], "prefix": "/t", "lease": 2}}')
    writer = Writer(town)
    town.type("gnt-disk add -t sharedfile -s 4M data1")
    data = town.uuid("data1")
    written = [writer.written()]

    attach = {"OP_ID": "OP_DISK_ATTACH", "disk": "data1", "instance_name": "web1"}
    with_work(town, attach, partial(town.type, f"moorage store move {there}"))
    written.append(writer.goes_on())
    assert town.scratch.master.etcd.exists()
    total = town.write("web1", data)
    with_work(town, None, partial(kills, town))
    written.append(writer.goes_on())
    detach = {"OP_ID": "OP_DISK_DETACH", "disk": "data1"}
    with_work(town, detach, partial(moves_back, town, writer))
    written.append(writer.goes_on())
    assert town.scratch.master.store.exists()
    assert not town.sees("web1", data)
    town.type("gnt-disk attach data1 web1")
    assert town.checksum("web1", data) == total
    assert all(one < other for one, other in pairwise(written))
    writer.end()
    assert town.healthy()


def with_work(
    town: Any, waits: dict[str, str] | None, happens: Callable[[], object]
) -> None:
    """Let something happen while disks are added, a job runs, and one waits for it."""
    account = Account(town.scratch.master, prefix=f"d{secrets.token_hex(2)}")
    assert process.wait_until(lambda: len(account.acknowledged) > 2, LONG)
    delay = {"OP_ID": "OP_TEST_DELAY", "duration": 2.0, "on_master": True}
    with LuxiClient(str(town.scratch.master.socket)) as luxi:
        job = luxi.submit_job([delay])
        if waits:
            job = luxi.submit_job([waits | {"depends": [[job, ["success"]]]}])
    happens()
    account.ended()
    town.type(f"gnt-job watch {job}")
    disks = {one["name"] for one in town.ask("gnt-disk list -o name")}
    assert disks >= set(account.acknowledged)


def kills(town: Any) -> None:
    """Kill the master; its supervisor starts it again, and it waits for its lease."""
    pid = process.holder(town.scratch.master.lock)
    assert pid
    os.kill(pid, signal.SIGKILL)
    assert process.wait_until(partial(serves, town), LONG)


def moves_back(town: Any, writer: Writer) -> None:
    """Kill a move as soon as it is noted, and type it again."""
    master = town.scratch.master
    words = "moorage store move sqlite"
    command = subprocess.Popen(
        shlex.split(words), env=town._environ, stdout=subprocess.DEVNULL
    )
    assert process.wait_until(master.moving.exists, LONG)
    command.kill()
    command.wait()
    assert master.etcd.exists()
    writer.goes_on()
    town.type(words)


def serves(town: Any) -> bool:
    return bool(town._run("gnt-cluster info", shown=False).returncode == 0)
