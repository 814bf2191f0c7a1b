# SPDX-License-Identifier: BSD-2-Clause
"""Change a disk: who has it, its size, name, mode, parameters; be rid of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Operand
from moorage.cli.fields import fills
from moorage.cli.follow import perform
from moorage.cli.operation import Performs
from moorage.cli.option_syntax import merged, reset, text_values
from moorage.cli.options import ASKING, JOB
from moorage.errors import BadInput
from moorage.units import format_size, parse_size

from .options import DISK, PARAM


def _attach(call: Call) -> None:
    disk, instance = call.words
    done = perform(call, **call.fields)
    slot = f" as {done[0][0]}" if done else ""
    call.terminal.print(f"Attached disk {disk} to instance {instance}{slot}")


def _grow(call: Call) -> None:
    disk, amount = call.words
    perform(call, **call.fields)
    word = "to" if call.option("absolute") else "by"
    call.terminal.print(f"Grew disk {disk} {word} {format_size(parse_size(amount))}")


def _rename(call: Call) -> None:
    disk, name = call.words
    perform(call, **call.fields)
    gone = name == "none"
    done = f"Took the name of disk {disk}" if gone else f"Renamed disk {disk} to {name}"
    call.terminal.print(done)


def _changed(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return parameters as texts; those set to none go back to their default."""
    return text_values(reset(merged(given)))


def _why(call: Call) -> dict[str, str]:
    """Return why a disk is forgotten, which stays in its story."""
    (disk,) = call.words
    if not call.option("reason"):
        raise BadInput(
            f"say why disk {disk} is forgotten",
            hint=f"gnt-disk forget --reason 'its node burnt' {disk}",
        )
    return {"why": call.option("reason")}


COMMANDS = (
    Command(
        "attach",
        _attach,
        (DISK, Operand("INSTANCE", field="instance_name")),
        (*fills("--index"), *JOB),
        examples={"gnt-disk attach data1 web1": "as the last disk of web1"},
        operation="OP_DISK_ATTACH",
    ),
    Command(
        "detach",
        Performs("Detached disk {disk}"),
        (DISK,),
        JOB,
        examples={"gnt-disk detach data1": "data1 belongs to nobody then"},
        operation="OP_DISK_DETACH",
    ),
    Command(
        "grow",
        _grow,
        (DISK, Operand("AMOUNT", field="amount", convert=parse_size)),
        (*fills("--absolute --ignore-ipolicy --ignore-capacity"), *JOB),
        examples={
            "gnt-disk grow data1 5G": "5 GiB more",
            "gnt-disk grow data1 20G --absolute": "20 GiB in all",
        },
        operation="OP_DISK_GROW",
    ),
    Command(
        "rename",
        _rename,
        (DISK, Operand("NEW_NAME", field="new_name")),
        JOB,
        operation="OP_DISK_RENAME",
    ),
    Command(
        "snapshot",
        Performs("Made a snapshot of disk {disk}: disk {result}"),
        (DISK,),
        (*fills("--name=new_name --ignore-capacity"), *JOB),
        examples={"gnt-disk snapshot data1 --name monday": "a copy to keep"},
        operation="OP_DISK_SNAPSHOT",
    ),
    Command(
        "modify",
        Performs("Modified disk {disk}", lacks="give --mode, --name or -D"),
        (DISK,),
        (
            *fills("--mode --name --force-params --lift-quarantine"),
            PARAM._replace(join=_changed),
            *JOB,
        ),
        operation="OP_DISK_SET_PARAMS",
    ),
    Command(
        "remove",
        Performs(
            "Removed disk {disk}",
            asks="This will remove disk {disk} and all its data. Continue?",
        ),
        (DISK,),
        (*fills("--volume-is-ours"), *ASKING, *JOB),
        examples={"gnt-disk remove -f data1": "without a question"},
        operation="OP_DISK_REMOVE",
    ),
    Command(
        "forget",
        Performs(
            "Forgot disk {disk}",
            asks="This will forget disk {disk}; its data is not looked for. Continue?",
            more=_why,
        ),
        (DISK,),
        (*ASKING, *JOB),
        examples={
            "gnt-disk forget --reason 'node3 burnt' data1": (
                "for a disk whose volume or node is gone for good"
            )
        },
        operation="OP_DISK_FORGET",
    ),
)
