# SPDX-License-Identifier: BSD-2-Clause
"""moorage: the daemons, and scratch clusters to try things on."""

import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from moorage.errors import BadInput
from moorage.units import counted, is_whole

from . import watcher
from .command import Call, Command, Operand, Option, Program
from .main import run
from .options import DEBUG
from .state_backup import COMMANDS as STATE_BACKUP
from .state_backup import places

_DIR = Operand("DIR")


def _daemons(name: str) -> ModuleType:
    """Return a module of the daemons' side, which is slow to import."""
    return import_module(f"moorage.daemons.{name}")


def _up(call: Call) -> None:
    scratch = _daemons("devcluster")
    hypervisor = call.option("hypervisor")
    guest = call.option("guest") or ""
    if hypervisor == "kvm" and not guest:
        guest = _built_guest(call)
    found = scratch.up(
        Path(call.words[0]),
        nodes=_number(call.option("nodes")),
        hypervisor=hypervisor,
        guest=guest,
        bare=bool(call.option("bare")),
    )
    call.terminal.talk(
        f"A cluster of {counted(found.nodes, 'node')} is up in {found.root}; to use it:"
    )
    call.terminal.print(scratch.shell(found))


def _built_guest(call: Call) -> str:
    """Return the directory of the tiny guest, built if nobody has yet."""
    guest = import_module("moorage.testing.guest_image")
    directory: Path = guest.usual_place(call.terminal.environ)
    if not (directory / "image.raw").exists():
        call.terminal.talk(f"Building the tiny guest in {directory} ...")
    guest.prepare(directory)
    return str(directory)


def _number(text: str) -> int:
    if not is_whole(text):
        raise BadInput(f"a number of nodes was expected, not '{text}'")
    return int(text)


def _env(call: Call) -> None:
    scratch = _daemons("devcluster")
    call.terminal.print(scratch.shell(scratch.read(Path(call.words[0]))))


def _down(call: Call) -> None:
    _daemons("devcluster").down(Path(call.words[0]))


def _tour(call: Call) -> int:
    module = import_module("moorage.cli.tour")
    status: int = module.run(Path(call.words[0]), simulated=bool(call.option("sim")))
    return status


def _agent(call: Call) -> None:
    _daemons("agent").run(Path(call.words[0]))


def _master(call: Call) -> int:
    at = places(call)
    (what,) = call.words
    if what == "run" and call.option("restart"):
        return int(_daemons("supervisor").run(at))
    module = _daemons("master")
    if what == "run":
        module.run(at)
    elif what == "start":
        pid = module.start(at)
        call.terminal.print(f"The master is up, process {pid}")
    elif what == "stop":
        stopped = module.stop(at)
        call.terminal.print("The master is stopped" if stopped else "No master runs")
    elif what == "check":
        return _checked(call, at)
    else:
        raise BadInput(
            f"the master can be run, started, stopped or checked, not '{what}'"
        )
    return 0


def _checked(call: Call, at: Any) -> int:  # noqa: ANN401 - imported late
    """Say what is wrong with a master's store; return 1 if anything is."""
    check = _daemons("store_check").check
    found = _daemons("state_directory").as_owner(at.root, check, at)
    for fault in found.faults:
        call.terminal.print(f"ERROR: {fault}")
    number = len(found.faults)
    verdict = f"{number} fault{'s' * (number > 1)}" if number else "No problem found"
    call.terminal.print(f"{verdict}: {found.summary}")
    return 1 if found.faults else 0


PROGRAM = Program(
    "moorage",
    "The daemons of Moorage, and scratch clusters to try things on.",
    (
        Command(
            "up",
            _up,
            "start a scratch cluster in a directory",
            (_DIR,),
            (
                Option(("--nodes",), "how many nodes (3)", "N", default="3"),
                Option(
                    ("--hypervisor",),
                    "kvm (QEMU guests), fake (no guests) or sim (simulated nodes)",
                    "NAME",
                    default="kvm",
                    choices=("kvm", "fake", "sim"),
                ),
                Option(("--guest",), "where the tiny guest was built", "DIR"),
                Option(("--bare",), "start the agents alone: no cluster yet"),
                DEBUG,
            ),
            examples={
                "moorage up /tmp/c --hypervisor sim": "three simulated nodes",
                'eval "$(moorage env /tmp/c)"': "use them from this shell",
                "gnt-node list": "see them",
            },
        ),
        Command("env", _env, "print the environment of a scratch cluster", (_DIR,)),
        Command("down", _down, "end a scratch cluster", (_DIR,)),
        Command(
            "tour",
            _tour,
            "show what Moorage is for, step by step",
            (_DIR,),
            (Option(("--sim",), "on simulated nodes: no root, no QEMU"),),
        ),
        Command("agent", _agent, "run the agent of a node", (_DIR,)),
        watcher.COMMAND,
        Command(
            "master",
            _master,
            "run, start or stop the master, or look at its store",
            (Operand("run|start|stop|check"),),
            (
                Option(("--dir",), "its directory (/var/lib/moorage)", "DIR"),
                Option(("--restart",), "run: start it again whenever it dies"),
            ),
            examples={
                "moorage master start": "in the background, supervised",
                "moorage master stop": "let running jobs end, then stop",
                "moorage master run": "in the foreground, for systemd",
                "moorage master check": "can its store be believed?",
            },
        ),
        *STATE_BACKUP,
    ),
)

main = partial(run, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
