# SPDX-License-Identifier: BSD-2-Clause
"""Checking the cluster, and mending what is on record."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill
from moorage.cli.follow import fetch, follow_many, perform, submitted
from moorage.cli.options import JOB, NO_SSH, moot, refused
from moorage.units import counted


def _verify(call: Call) -> int:
    skipped = {"skip_checks": ["nplusone_mem"]} if call.option("no_nplus1_mem") else {}
    found = fetch(call, **call.given, **skipped)
    call.show(found, verified(found, coded=call.option("error_codes")))
    return int(bool(found["errors"]))


def verified(found: Mapping[str, Any], *, coded: bool = False) -> Iterator[str]:
    """Yield what verify prints.

    Parameters
    ----------
    coded
        Whether each finding is one line with its code, kind and name, for programs.
    """
    checked = found["checked"].items()
    if checked:
        yield "* Verified " + ", ".join(_checked(*one) for one in checked)
    errors, warnings = found["errors"], found["warnings"]
    notices = found.get("notices", ())
    for word, findings in (
        ("ERROR", errors),
        ("WARNING", warnings),
        ("NOTICE", notices),
    ):
        for one in findings:
            if coded:
                kind, _, name = str(one["object"]).partition(" ")
                text = " ".join(str(one["message"]).split())
                yield f"  - {word}:{one['ecode']}:{kind}:{name}:{text}"
                continue
            yield f"  - {word}: {one.get('object')}: {one.get('message')}"
            if one.get("hint"):
                yield f"    hint: {one['hint']}"
    told = [
        counted(len(findings), word)
        for word, findings in (("error", errors), ("warning", warnings))
        if findings
    ]
    yield f"* {' and '.join(told)} found" if told else "* No problem found"


def _checked(what: str, number: int) -> str:
    """Return how many of something there were, which the master names in the plural.

    >>> _checked("nodes that answered", 1)
    '1 node that answered'
    """
    first, space, rest = what.partition(" ")
    return counted(number, f"{first.removesuffix('s')}{space}{rest}")


def _verify_disks(call: Call) -> int:
    found = fetch(call, **call.given)
    for node, why in found["silent"].items():
        call.terminal.talk(f"Warning: node {node} gives no answer: {why}")
    for name, disk, state in found["degraded"]:
        call.terminal.print(
            f"Disk {disk} of instance '{name}' has one good copy: {state}"
        )
    answers = submitted(found)
    for name in answers:
        call.terminal.print(f"Activating disks for instance '{name}'")
    if not answers and not found["degraded"]:
        call.terminal.print("All disks that should be attached are")
    return follow_many(call, answers) | int(bool(found["silent"]))


def _repair_disk_sizes(call: Call) -> None:
    fixed = perform(call, **call.fields)
    for name, slot, what, value in fixed or ():
        where = f"disk {name}" if slot is None else f"{name}: disk/{slot}"
        call.terminal.print(f"{where}: {what} is {value} MiB")


COMMANDS = (
    Command(
        "verify",
        _verify,
        (),
        (
            Option(("--error-codes",), "a line for programs: CODE:KIND:NAME:MESSAGE"),
            fill("-g/--node-group=group_name"),
            fill("-I/--ignore-errors", repeats=True),
            Option(("--no-nplus1-mem",), "do not look whether nodes could be lost"),
            moot("--verbose", "all that is found is told", short="-v"),
            moot("--verify-ssh-clutter", NO_SSH),
            refused("--debug-simulate-errors", "what is not found is not told"),
            *JOB,
        ),
        examples={"gnt-cluster verify --error-codes": "for a monitoring plugin"},
        operation="OP_CLUSTER_VERIFY",
    ),
    Command(
        "verify-disks",
        _verify_disks,
        (),
        (fill("-g/--node-group=group_name"), *JOB),
        operation="OP_CLUSTER_VERIFY_DISKS",
    ),
    Command(
        "repair-disk-sizes",
        _repair_disk_sizes,
        (Operand("INSTANCE", 0, None, "instances"),),
        (fill("--disk=disks", repeats=True), *JOB),
        examples={
            "gnt-cluster repair-disk-sizes web1": "the disks of web1",
            "gnt-cluster repair-disk-sizes --disk data1": "a disk that nobody has",
        },
        operation="OP_CLUSTER_REPAIR_DISK_SIZES",
    ),
)
