# SPDX-License-Identifier: BSD-2-Clause
"""A Ceph cluster of one monitor, one manager and one OSD that keeps data in memory.

It asks clients for keys (cephx), as real ones do, starts in seconds, and is gone
without a trace when it is closed. It needs root and Debian's Ceph packages.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from moorage.testing.foreign import Foreign, run, until

POOL, SECOND = "rbd", "fast"
USER = "guests"
"""The client that may use images of these pools, and nothing else."""
_CONF = """\
[global]
fsid = {fsid}
mon host = {address}:6789
keyring = {home}/keyring
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
ms bind msgr2 = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon allow pool delete = true
mon data avail crit = 1
mon data avail warn = 2
run dir = {home}
admin socket = {home}/$name.asok
pid file = {home}/$name.pid
log file = {home}/$name.log
mon data = {home}/mon
mgr data = {home}/mgr
osd data = {home}/osd
mgr initial modules =
osd objectstore = memstore
memstore device bytes = 1073741824
osd memory target = 939524096
osd class load list = *
osd class default list = *
[client]
log file =
admin socket =
"""
_CAPS: dict[str, dict[str, str]] = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "mgr": "allow *", "osd": "allow *"},
    "mgr.x": {"mon": "allow profile mgr", "mgr": "allow *", "osd": "allow *"},
    "osd.0": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
    f"client.{USER}": {
        "mon": "profile rbd",
        "osd": f"profile rbd pool={POOL}, profile rbd pool={SECOND}",
    },
}


class Ceph(Foreign):
    """A Ceph cluster on one address; a context manager.

    Parameters
    ----------
    address
        Where its monitor listens, at port 6789.

    Attributes
    ----------
    conf
        Its configuration file, which only root can use: the keys are root's.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._home = Path(tempfile.mkdtemp(prefix="ceph-"))
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.conf = self._home / "ceph.conf"

    def close(self) -> None:
        """End it; its data are gone."""
        for daemon in reversed(self._daemons):
            daemon.kill()
            daemon.wait()
        shutil.rmtree(self._home)

    def ask(self, *words: str) -> str:
        """Run a program of Ceph's, as the administrator; return what it prints."""
        program, *rest = words
        return run(program, "--conf", str(self.conf), *rest)

    def told(self, *words: str) -> Any:
        """Run a program of Ceph's; return its answer, which is JSON."""
        return json.loads(self.ask(*words, "--format", "json"))

    def _start(self) -> None:
        fsid, osd = str(uuid4()), str(uuid4())
        home, map_ = self._home, str(self._home / "monmap")
        text = _CONF.format(fsid=fsid, address=self._address, home=home)
        self.conf.write_text(text)
        self._make_keys()
        for name in ("mon", "mgr", "osd"):
            (home / name).mkdir()
        monitor = ("--add", "a", f"{self._address}:6789", map_)
        run("monmaptool", "--create", "--fsid", fsid, *monitor)
        keyring = ("--keyring", str(home / "keyring"))
        self.ask("ceph-mon", "--mkfs", "-i", "a", "--monmap", map_, *keyring)
        self._daemon("ceph-mon", "a")
        self._daemon("ceph-mgr", "x")
        self.ask("ceph", "osd", "new", osd)
        self.ask("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._daemon("ceph-osd", "0")
        for pool in (POOL, SECOND):
            self.ask("ceph", "osd", "pool", "create", pool, "8")
            self.ask("ceph", "osd", "pool", "application", "enable", pool, "rbd")

    def _make_keys(self) -> None:
        keyring = str(self._home / "keyring")
        run("ceph-authtool", "--create-keyring", keyring)
        for name, caps in _CAPS.items():
            words = [word for cap in caps.items() for word in ("--cap", *cap)]
            run("ceph-authtool", keyring, "--gen-key", "--name", name, *words)

    def _daemon(self, program: str, name: str) -> None:
        argv = (program, "--conf", str(self.conf), "-i", name, "-f")
        null = subprocess.DEVNULL
        with (self._home / f"{program}.err").open("ab") as errors:
            made = subprocess.Popen(argv, stdin=null, stdout=null, stderr=errors)
        self._daemons.append(made)

    def wait_for_room(self) -> None:
        """Wait until the manager has told how much room there is."""
        until(
            lambda: len(self.told("ceph", "df")["pools"]) >= 2,
            "Ceph has no room: its OSD or its manager does not come up",
        )
