# SPDX-License-Identifier: BSD-2-Clause
"""moorage up, env, down, tour: scratch clusters to try things on."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

from moorage.errors import BadInput
from moorage.hypervisors import HYPERVISORS, KVM, SIMULATED, USUAL
from moorage.units import counted, is_whole

from .command import Call, Command, Operand, Option
from .daemons_side import daemons, to_run
from .options import DEBUG

_DIR = Operand("DIR")


def _up(call: Call) -> None:
    hypervisor = call.option("hypervisor")
    guest = call.option("guest") or ""
    if hypervisor == KVM and not guest:
        guest = _built_guest(call)
    found = to_run("devcluster").up(
        Path(call.words[0]),
        nodes=_number(call.option("nodes")),
        hypervisor=hypervisor,
        guest=guest,
        bare=bool(call.option("bare")),
    )
    call.terminal.talk(
        f"A cluster of {counted(found.nodes, 'node')} is up in {found.root}; to use it:"
    )
    call.terminal.print(daemons("scratch_cluster").shell(found))


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


def _what(root: Path) -> ModuleType:
    """Return the module of what a directory has: a scratch cloud, or a cluster."""
    clouds = daemons("devcloud")
    return clouds if clouds.is_one(root) else daemons("scratch_cluster")


def _env(call: Call) -> None:
    root = Path(call.words[0])
    scratch = _what(root)
    call.terminal.print(scratch.shell(scratch.read(root)))


def _down(call: Call) -> None:
    root = Path(call.words[0])
    _what(root).down(root)


def _tour(call: Call) -> int:
    module = import_module("moorage.cli.tour")
    lead = module.run_cloud if call.option("cloud") else module.run
    status: int = lead(Path(call.words[0]), simulated=bool(call.option("sim")))
    return status


COMMANDS = (
    Command(
        "up",
        _up,
        (_DIR,),
        (
            Option(("--nodes",), "how many nodes (3)", "N", default="3"),
            Option(
                ("--hypervisor",),
                "kvm (QEMU guests), fake (no guests) or sim (simulated nodes)",
                "NAME",
                default=USUAL,
                choices=(*HYPERVISORS, SIMULATED),
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
    Command("env", _env, (_DIR,)),
    Command("down", _down, (_DIR,)),
    Command(
        "tour",
        _tour,
        (_DIR,),
        (
            Option(("--sim",), "on simulated nodes: no root, no QEMU"),
            Option(("--cloud",), "two clusters, and volumes that go between them"),
        ),
    ),
)
