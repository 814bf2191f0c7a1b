# SPDX-License-Identifier: BSD-2-Clause
"""Where a master waits for the lead, each command says so in the same words.

Each command of each program is typed at the socket of a master that waits; what it
asks for is refused before anything is done.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest

from desk import Screen
from moorage.api.luxi_server import LuxiServer
from moorage.cli.command import Command, programs
from moorage.cli.htools import start
from moorage.cli.main import run
from moorage.cli.terminal import Terminal
from moorage.daemons.opening import _follows
from moorage.errors import MoorageError, Refused
from moorage.node.records.leader import Leaders
from moorage.protocol.sender import Sender

LED = "another master leads on etcd://10.0.0.1:2379/demo (node1, process 7)"
SENTENCE = f"this master waits for the lead: {LED}"
PLANNERS = ("hbal", "hcheck", "hinfo", "hroller", "hspace", "hsqueeze")
HERE = {
    *("gnt-cluster init", "gnt-cluster destroy", "gnt-cluster master-failover"),
    *(f"moorage {one}" for one in ("agent", "master", "up", "down", "env", "tour")),
    *(f"moorage {one}" for one in ("backup", "restore", "store move")),
    *("moorage export-config", "moorage import-config"),
    *(f"moorage rapi {one}" for one in ("run", "certificate", "password")),
    *(f"moorage rapi {one}" for one in ("add-token", "list-tokens", "remove-token")),
}
"""Commands that ask no master, or work on this machine's directories."""
WORDS = {
    "gnt-cluster modify": "--enabled-hypervisors kvm",
    "gnt-cluster deactivate-master-ip": "--yes",
    "gnt-cluster queue": "info",
    "gnt-cluster watcher": "info",
    "gnt-cluster copyfile": "job.json",
    "gnt-cluster rename": "-f web1",
    "gnt-cluster epo": "-f --all",
    "gnt-node modify": "-O yes web1",
    "gnt-node migrate": "-f web1",
    "gnt-node failover": "-f web1",
    "gnt-node evacuate": "-f web1",
    "gnt-node powercycle": "-f web1",
    "gnt-node shutdown-orphan": "-f web1 web1",
    "gnt-node power": "-f off web1",
    "gnt-node restricted-command": "ls web1",
    "gnt-group modify": "--alloc-policy preferred web1",
    "gnt-instance info": "web1",
    "gnt-instance modify": "-B memory=1g web1",
    "gnt-instance startup": "web1",
    "gnt-instance shutdown": "web1",
    "gnt-instance reboot": "web1",
    "gnt-instance remove": "-f web1",
    "gnt-instance reinstall": "-f web1",
    "gnt-instance migrate": "-f web1",
    "gnt-instance failover": "-f web1",
    "gnt-instance move": "-f -n web1 web1",
    "gnt-instance batch-create": "batch.json",
    "gnt-instance grow-disk": "web1 0 1g",
    "gnt-instance replace-disks": "-a web1",
    "gnt-network add": "--network 10.0.0.0/24 web1",
    "gnt-network modify": "--gateway 10.0.0.1 web1",
    "gnt-disk grow": "web1 1g",
    "gnt-disk modify": "--name data1 web1",
    "gnt-disk convert": "-t sharedfile web1",
    "gnt-disk move": "--pool web1 web1",
    "gnt-disk clone": "--name data1 web1",
    "gnt-disk remove": "-f web1",
    "gnt-disk forget": "-f --reason gone web1",
    "gnt-storage pool modify": "-D a=b web1",
    "gnt-storage pool remove": "-f web1",
    "gnt-job info": "1",
    "gnt-job watch": "1",
    "gnt-job wait": "1",
    "gnt-job cancel": "1",
    "gnt-job archive": "1",
    "gnt-job autoarchive": "1h",
    "gnt-job change-priority": "--priority low 1",
    "gnt-os modify": "--hidden yes web1",
    "gnt-debug delay": "1",
    "gnt-debug submit-job": "job.json",
}
"""What is typed behind a command, where names alone do not get as far as the master."""


class Waiting:
    """A master that waits, and who asked it."""

    def __init__(self, directory: Path) -> None:
        self.asked = 0
        self.directory = directory
        self.server = LuxiServer(None, directory / "luxi.sock")
        self.server.excuse = self._excuse

    def _excuse(self) -> MoorageError:
        self.asked += 1
        return _follows(Refused(LED, hint="stop it first", host="node1", led=True))

    def typed(self, line: str) -> Screen:
        """Type a line, with nobody to answer a question."""
        name, *words = shlex.split(line)
        program = import_module(f"moorage.cli.{name.replace('-', '_')}").PROGRAM
        environ = {
            "MOORAGE_SOCKET": f"{self.directory}/luxi.sock",
            "MOORAGE_DIR": str(self.directory),
            "MOORAGE_NODE_DIR": str(self.directory),
            "TERM": "dumb",
        }
        out, err = StringIO(), StringIO()
        status = run(program, words, Terminal(out, err, StringIO(), environ))
        return Screen(status, out.getvalue(), err.getvalue())


@pytest.fixture
async def waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Waiting]:
    monkeypatch.chdir(tmp_path)
    for name in ("MOORAGE_DIR", "MOORAGE_NODE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    found = Waiting(tmp_path)
    (tmp_path / "job.json").write_text('[{"OP_ID": "OP_TEST_DELAY", "duration": 1}]')
    (tmp_path / "batch.json").write_text('[{"name": "web1", "disk_template": "x"}]')
    await found.server.start()
    yield found
    await found.server.stop()


def lines() -> Iterator[str]:
    """Yield a line for each command that asks the master."""
    for program in programs():
        for command in program.commands:
            name = f"{program.name} {command.name}"
            if name not in HERE:
                yield f"{name} {WORDS.get(name) or _words(command)}"


def _words(command: Command) -> str:
    last = command.name.split()[-1]
    if last in ("add-tags", "remove-tags"):
        return f"{'web1 ' * bool(command.operands[0].field != 'tags')}gold"
    return " ".join("web1" for one in command.operands for _ in range(one.least))


async def test_each_command_says_that_another_master_leads(waiting: Waiting) -> None:
    wrong = []
    for line in lines():
        asked = waiting.asked
        screen = await asyncio.to_thread(waiting.typed, line)
        said = SENTENCE in screen.err and "nothing was changed" in screen.err
        status = 11 if line.startswith("moorage watcher") else 1
        if waiting.asked == asked or not said or screen.status != status:
            wrong.append(f"{line}: {screen}")
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("name", PLANNERS)
async def test_planners_say_it_too(
    waiting: Waiting, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    program = import_module(f"moorage.cli.htools.{name}").PROGRAM
    asked = f"-L{waiting.server.path}"
    assert await asyncio.to_thread(start.run, program, [asked]) == 1
    assert SENTENCE in capsys.readouterr().err


async def test_where_it_leads_is_asked_here(waiting: Waiting) -> None:
    Leaders(waiting.directory / "run").hear(7, Sender(node="node1"))
    screen = await asyncio.to_thread(waiting.typed, "gnt-cluster getmaster")
    assert (screen.status, screen.out) == (0, "node1\n")
