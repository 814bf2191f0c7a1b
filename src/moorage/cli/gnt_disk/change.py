# SPDX-License-Identifier: BSD-2-Clause
"""Change a disk: who has it, its size, name, mode, parameters; be rid of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.operation import performs
from moorage.cli.option_syntax import merged, reset, text_values
from moorage.cli.options import ASKING, FORCE_PARAMS, IGNORE_CAPACITY, JOB, OVERRIDES
from moorage.errors import BadInput
from moorage.units import format_size, parse_size

from .options import DISK, MODE, PARAM


def _attach(call: Call) -> None:
    disk, instance = call.words
    done = perform(call, "OP_DISK_ATTACH", **call.fields)
    slot = f" as {done[0][0]}" if done else ""
    call.terminal.print(f"Attached disk {disk} to instance {instance}{slot}")


def _grow(call: Call) -> None:
    disk, amount = call.words
    perform(call, "OP_DISK_GROW", **call.fields)
    word = "to" if call.option("absolute") else "by"
    call.terminal.print(f"Grew disk {disk} {word} {format_size(parse_size(amount))}")


def _rename(call: Call) -> None:
    disk, name = call.words
    perform(call, "OP_DISK_RENAME", **call.fields)
    gone = name == "none"
    done = f"Took the name of disk {disk}" if gone else f"Renamed disk {disk} to {name}"
    call.terminal.print(done)


def _changed(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return parameters as texts; those set to none go back to their default."""
    return text_values(reset(merged(given)))


def _forget(call: Call) -> None:
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


COMMANDS = (
    Command(
        "attach",
        _attach,
        (DISK, Operand("INSTANCE", field="instance_name")),
        (
            Option(("--index",), "the slot; -1, after the last, by default", "N", int),
            *JOB,
        ),
        examples={"gnt-disk attach data1 web1": "as the last disk of web1"},
    ),
    Command(
        "detach",
        performs("OP_DISK_DETACH", "Detached disk {disk}"),
        (DISK,),
        JOB,
        examples={"gnt-disk detach data1": "data1 belongs to nobody then"},
    ),
    Command(
        "grow",
        _grow,
        (DISK, Operand("AMOUNT", field="amount", convert=parse_size)),
        (
            Option(("--absolute",), "AMOUNT is the new size, not what is added"),
            *OVERRIDES,
            *JOB,
        ),
        examples={
            "gnt-disk grow data1 5G": "5 GiB more",
            "gnt-disk grow data1 20G --absolute": "20 GiB in all",
        },
    ),
    Command(
        "rename",
        _rename,
        (DISK, Operand("NEW_NAME", field="new_name")),
        JOB,
    ),
    Command(
        "snapshot",
        performs("OP_DISK_SNAPSHOT", "Made a snapshot of disk {disk}: disk {result}"),
        (DISK,),
        (
            Option(("--name",), "name of the new disk", "NAME", dest="new_name"),
            IGNORE_CAPACITY,
            *JOB,
        ),
        examples={"gnt-disk snapshot data1 --name monday": "a copy to keep"},
    ),
    Command(
        "modify",
        performs(
            "OP_DISK_SET_PARAMS",
            "Modified disk {disk}",
            lacks="give --mode, --name or -D",
        ),
        (DISK,),
        (
            MODE,
            Option(("--name",), "the new name", "NAME"),
            PARAM._replace(join=_changed),
            FORCE_PARAMS,
            Option(("--lift-quarantine",), "somebody looked: it is safe to use"),
            *JOB,
        ),
    ),
    Command(
        "remove",
        performs(
            "OP_DISK_REMOVE",
            "Removed disk {disk}",
            asks="This will remove disk {disk} and all its data. Continue?",
        ),
        (DISK,),
        (
            Option(
                ("--volume-is-ours",),
                "somebody looked: the volume of a disk in quarantine is its own",
            ),
            *ASKING,
            *JOB,
        ),
        examples={"gnt-disk remove -f data1": "without a question"},
    ),
    Command(
        "forget",
        _forget,
        (DISK,),
        (*ASKING, *JOB),
        examples={
            "gnt-disk forget --reason 'node3 burnt' data1": (
                "for a disk whose volume or node is gone for good"
            )
        },
    ),
)
