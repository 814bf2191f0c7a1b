# SPDX-License-Identifier: BSD-2-Clause
"""gnt-disk: disks as citizens of their own, with or without an instance."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.errors import BadInput
from moorage.units import format_size, parse_size

from . import details
from .command import Call, Command, Example, Operand, Option, Program
from .follow import perform
from .listing import Listing
from .main import run
from .option_syntax import key_values, text_values
from .options import (
    ASKING,
    DEBUG,
    FORCE_PARAMS,
    IGNORE_CAPACITY,
    JOB,
    JSON,
    OVERRIDES,
    names,
    overridden,
)
from .table import moment
from .yamlish import Flow

LISTING = Listing(
    "disk",
    ("name", "uuid", "dev_type", "size", "status", "instance"),
    ("name", "uuid"),
)
_INFO = [
    "name",
    "uuid",
    "serial_no",
    "ctime",
    "mtime",
    "dev_type",
    "logical_id",
    "provider",
    "params",
    "sunit",
    "size",
    "mode",
    "status",
    "instance",
    "iv_name",
    "nodes",
    "last_node",
    "epoch",
    "quarantine",
    "tags",
]


def add(call: Call) -> int:
    """Make a disk that belongs to nobody."""
    name = _only_name(call)
    fields = call.given(
        disk_template="disk_template",
        provider="provider",
        access="access",
        adopt="adopt",
        size="size",
        mode="mode",
        node="node",
        group="node_group",
        tags="tags",
    )
    if "disk_template" not in fields:
        raise BadInput(
            "a new disk needs a template", hint="add -t ext, -t sharedfile ..."
        )
    if "size" not in fields and "adopt" not in fields:
        raise BadInput(
            "a new disk needs a size", hint="add -s 10G (or --adopt to take data over)"
        )
    params = _merged(call.option("param"))
    uuid = perform(
        call,
        "OP_DISK_ADD",
        **fields,
        **({"name": name} if name else {}),
        **({"params": text_values(params)} if params else {}),
        **_forced(call),
        **overridden(call),
    )
    call.terminal.print(f"Added disk {name} ({uuid})" if name else f"Added disk {uuid}")
    return 0


def _only_name(call: Call) -> str | None:
    """Return the new disk's name: the operand, or ``--name``."""
    given = {*call.words, *filter(None, [call.option("name")])}
    if len(given) > 1:
        raise BadInput("a disk has one name", hint="drop either --name or the operand")
    return next(iter(given), None)


def _forced(call: Call) -> dict[str, bool]:
    return {"force_params": True} if call.option("force_params") else {}


def _merged(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: value for given in values for key, value in given.items()}


def attach(call: Call) -> int:
    """Attach a disk to an instance."""
    disk, instance = call.words
    fields = call.given(index="index")
    done = perform(call, "OP_DISK_ATTACH", disk=disk, instance_name=instance, **fields)
    slot = f" as {done[0][0]}" if done else ""
    call.terminal.print(f"Attached disk {disk} to instance {instance}{slot}")
    return 0


def detach(call: Call) -> int:
    """Detach a disk from its instance; the data stays."""
    (disk,) = call.words
    perform(call, "OP_DISK_DETACH", disk=disk)
    call.terminal.print(f"Detached disk {disk}")
    return 0


def grow(call: Call) -> int:
    """Make a disk larger."""
    disk, amount = call.words
    size, absolute = parse_size(amount), bool(call.option("absolute"))
    fields = {"disk": disk, "amount": size, "absolute": absolute}
    perform(call, "OP_DISK_GROW", **fields, **overridden(call))
    word = "to" if absolute else "by"
    call.terminal.print(f"Grew disk {disk} {word} {format_size(size)}")
    return 0


def rename(call: Call) -> int:
    """Give a disk another name; its volume keeps its own."""
    disk, name = call.words
    perform(call, "OP_DISK_RENAME", disk=disk, new_name=name)
    call.terminal.print(f"Renamed disk {disk} to {name}")
    return 0


def snapshot(call: Call) -> int:
    """Make a new, detached disk with what this one holds now."""
    (disk,) = call.words
    fields = call.given(new_name="name")
    uuid = perform(call, "OP_DISK_SNAPSHOT", disk=disk, **fields, **overridden(call))
    call.terminal.print(f"Made a snapshot of disk {disk}: disk {uuid}")
    return 0


def remove(call: Call) -> int:
    """Remove a detached disk and its data."""
    (disk,) = call.words
    call.ask(f"This will remove disk {disk} and all its data. Continue?")
    perform(call, "OP_DISK_REMOVE", disk=disk)
    call.terminal.print(f"Removed disk {disk}")
    return 0


def forget(call: Call) -> int:
    """Drop what the cluster knows of a disk that is lost."""
    (disk,) = call.words
    why = call.option("reason")
    if not why:
        raise BadInput(
            f"say why disk {disk} is forgotten",
            hint=f"gnt-disk forget --reason 'its node burnt' {disk}",
        )
    call.ask(f"This will forget disk {disk}; its data is not looked for. Continue?")
    perform(call, "OP_DISK_FORGET", disk=disk, why=why)
    call.terminal.print(f"Forgot disk {disk}")
    return 0


def modify(call: Call) -> int:
    """Change a disk's mode, name or parameters."""
    (disk,) = call.words
    fields = call.given(mode="mode", name="name")
    params = _merged(call.option("param"))
    if params:
        fields["params"] = {
            key: "default" if value is None else str(value)
            for key, value in params.items()
        }
    if call.option("lift_quarantine"):
        fields["lift_quarantine"] = True
    if not fields:
        raise BadInput("nothing to change", hint="give --mode, --name or -D")
    perform(call, "OP_DISK_SET_PARAMS", disk=disk, **fields, **_forced(call))
    call.terminal.print(f"Modified disk {disk}")
    return 0


# -- info ------------------------------------------------------------------------------


def info(call: Call) -> int:
    """Print all that is known of some disks."""
    found = details.look_up(call, "disk", _INFO, LISTING.key)
    return details.show(call, found, _shown)


def _shown(disk: Mapping[str, Any]) -> dict[str, Any]:
    owner = disk["instance"] if disk["status"] == "attached" else None
    shown = {
        "Disk name": disk["name"],
        "UUID": disk["uuid"],
        "Serial number": disk["serial_no"],
        "Creation time": moment(disk["ctime"]),
        "Modification time": moment(disk["mtime"]),
        "Template": disk["dev_type"],
        "logical_id": Flow(disk["logical_id"] or ()),
        "Provider": disk["provider"],
        "Parameters": disk["params"] or "(none)",
        "Storage unit": "/".join((disk["sunit"] or ())[:2]),
        "Size": format_size(disk["size"]),
        "Access mode": disk["mode"],
        "State": disk["status"],
        "Attached to": f"{owner} ({disk['iv_name']})" if owner else None,
        "Nodes": _joined(disk["nodes"]),
        "Last node": disk["last_node"],
        "Epoch": disk["epoch"],
        "Quarantine": disk["quarantine"],
        "Tags": _joined(disk["tags"]) or "(none)",
    }
    seldom = ("Provider", "Quarantine", "Nodes", "Last node", "Storage unit")
    return {k: v for k, v in shown.items() if v or k not in seldom}


def _joined(values: Any) -> str:  # noqa: ANN401
    return values if isinstance(values, str) else ", ".join(values or ())


# -- the program -----------------------------------------------------------------------

_DISK = Operand("DISK")
_PARAM = Option(
    ("-D", "--param"),
    "parameters of the template or provider; may be repeated",
    "KEY=VALUE,...",
    key_values,
    repeats=True,
)
_MODE = Option(("--mode",), "rw or ro", "MODE", choices=("rw", "ro"))

ADD = Command(
    "add",
    add,
    "Make a disk that belongs to no instance yet",
    (Operand("NAME", 0),),
    (
        Option(
            ("-t", "--disk-template"),
            "how the disk is stored: ext, sharedfile...",
            "NAME",
        ),
        Option(("-s", "--size"), "its size: 512M, 10G, 1.5T", "SIZE", parse_size),
        Option(("-p", "--provider"), "ExtStorage provider, for ext", "NAME"),
        _PARAM,
        Option(
            ("--access",),
            "how a guest reaches it",
            "HOW",
            choices=("kernelspace", "userspace"),
        ),
        Option(("--adopt",), "take over what is there already", "PATH"),
        Option(("--name",), "the disk's name, as the operand", "NAME"),
        Option(("-n", "--node"), "the node that is to hold it", "NODE"),
        Option(("-g", "--node-group"), "the node group that is to reach it", "GROUP"),
        _MODE,
        FORCE_PARAMS,
        Option(("--tags",), "tags, with commas", "TAGS", names),
        IGNORE_CAPACITY,
        *JOB,
    ),
    examples=(
        Example(
            "gnt-disk add -t ext -p san -s 10G data1", "10 GiB on the provider san"
        ),
        Example(
            "gnt-disk add -t ext -p san -s 10G -D pool=fast,trim data2",
            "with parameters for the provider",
        ),
        Example(
            "gnt-disk add -t blockdev --adopt /dev/disk/by-id/wwn-5 lun5",
            "a device that is there already",
        ),
    ),
)

_COMMANDS = (
    Command(
        "info",
        info,
        "Show all about disks",
        (Operand("DISK", 0, None),),
        (JSON, DEBUG),
        ("show",),
        (Example("gnt-disk info data1", "where it is, and who has it"),),
    ),
    Command(
        "attach",
        attach,
        "Attach a disk to an instance, running or not",
        (_DISK, Operand("INSTANCE")),
        (
            Option(("--index",), "the slot; -1, after the last, by default", "N", int),
            *JOB,
        ),
        examples=(Example("gnt-disk attach data1 web1", "as the last disk of web1"),),
    ),
    Command(
        "detach",
        detach,
        "Detach a disk from its instance; its data stays",
        (_DISK,),
        JOB,
        examples=(Example("gnt-disk detach data1", "data1 belongs to nobody then"),),
    ),
    Command(
        "grow",
        grow,
        "Make a disk larger; a running guest sees it",
        (_DISK, Operand("AMOUNT")),
        (
            Option(("--absolute",), "AMOUNT is the new size, not what is added"),
            *OVERRIDES,
            *JOB,
        ),
        examples=(
            Example("gnt-disk grow data1 5G", "5 GiB more"),
            Example("gnt-disk grow data1 20G --absolute", "20 GiB in all"),
        ),
    ),
    Command(
        "rename",
        rename,
        "Give a disk another name",
        (_DISK, Operand("NEW_NAME")),
        JOB,
    ),
    Command(
        "snapshot",
        snapshot,
        "Make a new, detached disk of what a disk holds now",
        (_DISK,),
        (Option(("--name",), "name of the new disk", "NAME"), IGNORE_CAPACITY, *JOB),
        examples=(Example("gnt-disk snapshot data1 --name monday", "a copy to keep"),),
    ),
    Command(
        "modify",
        modify,
        "Change a disk's mode, name or parameters",
        (_DISK,),
        (
            _MODE,
            Option(("--name",), "the new name", "NAME"),
            _PARAM,
            FORCE_PARAMS,
            Option(("--lift-quarantine",), "somebody looked: it is safe to use"),
            *JOB,
        ),
    ),
    Command(
        "remove",
        remove,
        "Remove a detached disk and all its data",
        (_DISK,),
        (*ASKING, *JOB),
        examples=(Example("gnt-disk remove -f data1", "without a question"),),
    ),
    Command(
        "forget",
        forget,
        "Drop the record of a disk that is lost; nothing is done to its storage",
        (_DISK,),
        (*ASKING, *JOB),
        examples=(
            Example(
                "gnt-disk forget --reason 'node3 burnt' data1",
                "for a disk whose volume or node is gone for good",
            ),
        ),
    ),
)

PROGRAM = Program(
    "gnt-disk",
    "make, attach, move, grow and remove disks",
    (ADD, *LISTING.commands("gnt-disk", 'status == "detached"'), *_COMMANDS),
)


def main() -> int:
    """Run gnt-disk."""
    return run(PROGRAM)
