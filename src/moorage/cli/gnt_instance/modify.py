# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance modify."""

from collections.abc import Sequence
from typing import Any

from moorage.cli import nic_options
from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import backend_parameters, key_values, text_values
from moorage.cli.options import (
    FORCE_PARAMS,
    JOB,
    NO_WAIT_FOR_SYNC,
    OVERRIDES,
    RATE,
    YES,
    moot,
    overridden,
    refused,
)
from moorage.errors import BadInput

from .disk_options import changes, disk_option
from .os_options import FORCE_VARIANT, NO_CHANNEL, OS_PARAMETERS, parameters

_NOTE = (
    "Please don't forget that most parameters take effect only at the next "
    "(re)start of the instance initiated by ganeti; restarting from within the "
    "instance will not be enough."
)

_FULL = (
    "a guest keeps the memory that it started with; -B memory= is for the next start"
)
_AT_START = ("be/", "hv/")
"""What a guest is given when it starts; disks come and go while it runs."""


def modify(call: Call) -> int:
    """Change an instance, its disks included."""
    (name,) = call.words
    fields = {**_parameters(call), **_state(call), **_storage(call)}
    disks = changes(call.option("disk"))
    if disks:
        fields["disks"] = [list(change) for change in disks]
    if call.option("net"):
        fields["nics"] = nic_options.changes(call.option("net"))
    if not fields:
        raise BadInput(
            "nothing to modify", hint="gnt-instance modify --help lists what there is"
        )
    for action, which, _ in disks:
        if action == "remove":
            word = f"disk {which}" if which != -1 else "the last disk"
            call.warn(f"This will remove {word} of {name} and all its data. Continue?")
    ways = {**_ways(call), **overridden(call), **nic_options.conflicts(call)}
    result = perform(
        call, "OP_INSTANCE_SET_PARAMS", instance_name=name, **fields, **ways
    )
    _tell(call, name, result or ())
    return 0


def _tell(call: Call, name: str, result: Sequence[Sequence[Any]]) -> None:
    if not result:
        return
    call.terminal.print(f"Modified instance {name}")
    for what, value in result:
        call.terminal.print(f" - {what:<5} -> {value}")
    if any(what.startswith(_AT_START) for what, _ in result):
        call.terminal.print(_NOTE)


def _parameters(call: Call) -> dict[str, Any]:
    fields = call.given(
        beparams="backend_parameters",
        os_name="os_type",
        pnode="new_primary",
    )
    fields |= parameters(call)
    if call.option("hypervisor_parameters"):
        keys = call.option("hypervisor_parameters")
        fields["hvparams"] = {
            key: "default" if value is None else value for key, value in keys.items()
        }
    return fields


def _storage(call: Call) -> dict[str, Any]:
    """Return the storage that all disks are to have, and how they get there."""
    fields = call.given(
        disk_template="disk_template",
        pool="pool",
        remote_node="node",
        rate="rate",
        file_storage_dir="file_storage_dir",
    )
    params = call.option("ext_params")
    return {**fields, **({"ext_params": text_values(params)} if params else {})}


def _state(call: Call) -> dict[str, bool]:
    if call.option("offline") and call.option("online"):
        raise BadInput("--offline and --online do not go together")
    if call.option("offline"):
        return {"offline": True}
    return {"offline": False} if call.option("online") else {}


def _ways(call: Call) -> dict[str, bool]:
    """Return how the change is to be made."""
    switches = ("force", "force_params", "hotplug", "hotplug_if_possible")
    return {name: True for name in switches if call.option(name)}


def hypervisor_keys(text: str) -> dict[str, Any]:
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
        nic_options.MODIFIED,
        nic_options.CONFLICTS,
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
            hypervisor_keys,
        ),
        *OS_PARAMETERS[:2],
        Option(
            ("-t", "--disk-template"),
            "convert all disks to it, also while the instance runs",
            "NAME",
        ),
        Option(
            ("-e", "--ext-params"),
            "with -t: provider=..., and parameters of the new disks",
            "KEY=VALUE,...",
            key_values,
        ),
        Option(("--pool",), "bring all disks to this storage pool", "POOL"),
        Option(("-n", "--node"), "with -t: the second node of mirrored disks", "NODE"),
        RATE,
        Option(
            ("--new-primary",),
            "where an instance that is down begins; its disks must be there",
            "NODE",
        ),
        Option(("-o", "--os-type"), "the OS that it is said to have", "OS"),
        Option(("--offline",), "mark it as offline: nothing is to run"),
        Option(("--online",), "take that mark away"),
        Option(("--hotplug",), "plug into the running guest, or fail"),
        Option(("--hotplug-if-possible",), "plug into the running guest if it can be"),
        *OVERRIDES,
        NO_WAIT_FOR_SYNC,
        FORCE_VARIANT,
        FORCE_PARAMS,
        moot("--file-driver", "QEMU itself opens image files", "NAME"),
        Option(
            ("--file-storage-dir",),
            "directory for new image files, below the cluster's",
            "DIR",
        ),
        refused("--iallocator", "-n names the second node", "NAME", short="-I"),
        refused("--runtime-memory", _FULL, "SIZE", short="-m"),
        refused("--communication", NO_CHANNEL, "yes|no", short="-c"),
        moot("--force", "nobody is asked", short="-f"),
        YES,
        *JOB,
    ),
    examples=(
        Example(
            "gnt-instance modify --disk add:size=5G web1",
            "one disk more, of the kind that web1 has",
        ),
        Example(
            "gnt-instance modify --disk 1:detach web1",
            "take its second disk away; the data stays",
        ),
        Example(
            "gnt-instance modify --disk 1:attach,name=data1 web2", "give it to another"
        ),
        Example(
            "gnt-instance modify -t ext -e provider=san web1",
            "bring all its disks to the provider san",
        ),
        Example(
            "gnt-instance modify --net add:network=lan,ip=pool web1",
            "one network card more, with an address of the network lan",
        ),
        Example("gnt-instance modify -B memory=2G,vcpus=4 web1", "from the next start"),
    ),
)
