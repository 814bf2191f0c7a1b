# SPDX-License-Identifier: BSD-2-Clause
"""moorage: the daemons, and scratch clusters to try things on."""

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from moorage.errors import BadInput, Failed
from moorage.units import counted, is_whole

from . import state_backup, watcher
from .command import Call, Command, Example, Operand, Option, Program
from .main import run
from .options import DEBUG

_DIR = Operand("DIR")


def _daemons(name: str) -> ModuleType:
    """Return a module of the daemons' side, which is slow to import."""
    return import_module(f"moorage.daemons.{name}")


def _plainly(does: Callable[[Call], int]) -> Callable[[Call], int]:
    """Return a command that tells of a file which cannot be used in a sentence."""

    @wraps(does)
    def command(call: Call) -> int:
        try:
            return does(call)
        except OSError as error:
            file = f"{error.filename}: " if error.filename else ""
            raise Failed(f"{file}{error.strerror or error}") from error

    return command


@_plainly
def up(call: Call) -> int:
    """Start a scratch cluster in a directory."""
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
    return 0


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


@_plainly
def env(call: Call) -> int:
    """Print the environment by which commands find a scratch cluster."""
    scratch = _daemons("devcluster")
    call.terminal.print(scratch.shell(scratch.read(Path(call.words[0]))))
    return 0


@_plainly
def down(call: Call) -> int:
    """End a scratch cluster: its processes, its loop devices and its directory."""
    _daemons("devcluster").down(Path(call.words[0]))
    return 0


@_plainly
def tour(call: Call) -> int:
    """Show, step by step, what Moorage exists for."""
    module = import_module("moorage.cli.tour")
    status: int = module.run(Path(call.words[0]), simulated=bool(call.option("sim")))
    return status


@_plainly
def agent(call: Call) -> int:
    """Run the agent of the node that lives in a directory."""
    _daemons("agent").run(Path(call.words[0]))
    return 0


@_plainly
def master(call: Call) -> int:
    """Run, start or stop the master, or look at its store."""
    places = _daemons("paths")
    given = call.option("dir")
    at = places.MasterPlaces(Path(given)) if given else places.master_places()
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
            up,
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
            examples=(
                Example("moorage up /tmp/c --hypervisor sim", "three simulated nodes"),
                Example('eval "$(moorage env /tmp/c)"', "use them from this shell"),
                Example("gnt-node list", "see them"),
            ),
        ),
        Command("env", env, "print the environment of a scratch cluster", (_DIR,)),
        Command("down", down, "end a scratch cluster", (_DIR,)),
        Command(
            "tour",
            tour,
            "show what Moorage is for, step by step",
            (_DIR,),
            (Option(("--sim",), "on simulated nodes: no root, no QEMU"),),
        ),
        Command("agent", agent, "run the agent of a node", (_DIR,)),
        watcher.COMMAND,
        Command(
            "master",
            master,
            "run, start or stop the master, or look at its store",
            (Operand("run|start|stop|check"),),
            (
                Option(("--dir",), "its directory (/var/lib/moorage)", "DIR"),
                Option(("--restart",), "run: start it again whenever it dies"),
            ),
            examples=(
                Example("moorage master start", "in the background, supervised"),
                Example("moorage master stop", "let running jobs end, then stop"),
                Example("moorage master run", "in the foreground, for systemd"),
                Example("moorage master check", "can its store be believed?"),
            ),
        ),
        *state_backup.COMMANDS,
    ),
)


def main() -> int:
    """Run the program."""
    return run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
