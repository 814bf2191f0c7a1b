# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance modify."""

from collections.abc import Sequence
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.options import FORCE, JOB, NO_WAIT_FOR_SYNC
from moorage.cli.words import backend_parameters, ident_key_values, key_values
from moorage.errors import BadInput

from .disk_options import changes, disk_option

_NOTE = (
    "Please don't forget that most parameters take effect only at the next "
    "(re)start of the instance initiated by ganeti; restarting from within the "
    "instance will not be enough."
)


def modify(call: Call) -> int:
    """Change an instance, its disks included."""
    (name,) = call.words
    fields = {**_parameters(call), **_state(call)}
    disks = changes(call.option("disk"))
    if disks:
        fields["disks"] = [list(change) for change in disks]
    nics = changes_of_nics(call.option("net"))
    if nics:
        fields["nics"] = nics
    if not fields:
        raise BadInput(
            "nothing to modify", hint="gnt-instance modify --help lists what there is"
        )
    result = perform(
        call, "OP_INSTANCE_SET_PARAMS", instance_name=name, **fields, **_ways(call)
    )
    _tell(call, name, result or ())
    return 0


def _tell(call: Call, name: str, result: Sequence[Sequence[Any]]) -> None:
    if not result:
        return
    call.terminal.print(f"Modified instance {name}")
    for what, value in result:
        call.terminal.print(f" - {what:<5} -> {value}")
    call.terminal.print(_NOTE)


def _parameters(call: Call) -> dict[str, Any]:
    fields = call.given(
        beparams="backend_parameters",
        osparams="os_parameters",
        os_name="os_type",
    )
    if call.option("hypervisor_parameters"):
        keys = call.option("hypervisor_parameters")
        fields["hvparams"] = {
            key: "default" if value is None else value for key, value in keys.items()
        }
    return fields


def _state(call: Call) -> dict[str, bool]:
    if call.option("offline") and call.option("online"):
        raise BadInput("--offline and --online do not go together")
    if call.option("offline"):
        return {"offline": True}
    return {"offline": False} if call.option("online") else {}


def _ways(call: Call) -> dict[str, bool]:
    """Return how the change is to be made."""
    switches = ("force", "hotplug", "hotplug_if_possible")
    return {name: True for name in switches if call.option(name)}


def changes_of_nics(given: Sequence[tuple[str, dict[str, Any]]]) -> list[list[Any]]:
    """Return what to do with an instance's network cards: [action, which, keys]."""
    found = []
    for ident, keys in given:
        if ident in ("add", "remove"):
            found.append([ident, -1, keys])
            continue
        action = next((a for a in ("add", "remove") if a in keys), "modify")
        which = int(ident) if ident.removeprefix("-").isdecimal() else ident
        rest = {k: v for k, v in keys.items() if k not in (action, "modify")}
        found.append([action, which, rest])
    return found


def _hypervisor_keys(text: str) -> dict[str, Any]:
    """Return the keys of ``-H kvm:acpi=false``, or without the hypervisor's name."""
    ident, colon, rest = text.partition(":")
    return key_values(rest if colon and "=" not in ident else text)


COMMAND = Command(
    "modify",
    modify,
    "Change an instance: its disks, cards and parameters",
    (Operand("INSTANCE"),),
    (
        Option(
            ("--disk",),
            "N:add,size=..., N:attach,name=..., N:detach, N:remove, N:modify,...; "
            "N may be a name or uuid where the disk is there already",
            "N:ACTION,KEY=VALUE,...",
            disk_option,
            repeats=True,
        ),
        Option(
            ("--net",),
            "N:add,..., N:remove, N:modify,...",
            "N:ACTION,KEY=VALUE,...",
            ident_key_values,
            repeats=True,
        ),
        Option(
            ("-B", "--backend-parameters"),
            "memory=1G,vcpus=2 and the like",
            "KEY=VALUE,...",
            backend_parameters,
        ),
        Option(
            ("-H", "--hypervisor-parameters"),
            "the hypervisor's parameters",
            "KEY=VALUE,...",
            _hypervisor_keys,
        ),
        Option(
            ("-O", "--os-parameters"),
            "for the OS's scripts",
            "KEY=VALUE,...",
            key_values,
        ),
        Option(("--os-type",), "the OS that it is said to have", "OS"),
        Option(("--offline",), "mark it as offline: nothing is to run"),
        Option(("--online",), "take that mark away"),
        Option(("--hotplug",), "plug into the running guest, or fail"),
        Option(("--hotplug-if-possible",), "plug into the running guest if it can be"),
        NO_WAIT_FOR_SYNC,
        FORCE,
        *JOB,
    ),
    examples=(
        Example("gnt-instance modify --disk -1:add,size=5G web1", "one disk more"),
        Example(
            "gnt-instance modify --disk 1:detach web1",
            "take its second disk away; the data stays",
        ),
        Example(
            "gnt-instance modify --disk 1:attach,name=data1 web2", "give it to another"
        ),
        Example("gnt-instance modify -B memory=2G,vcpus=4 web1", "from the next start"),
    ),
)
