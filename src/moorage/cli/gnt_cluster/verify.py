# SPDX-License-Identifier: BSD-2-Clause
"""Checking the cluster, and mending what is on record."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import fetch, follow_many, perform
from moorage.cli.options import JOB, moot, refused
from moorage.units import counted


def verify(call: Call) -> int:
    """Check the whole cluster; the exit status says whether anything is wrong."""
    fields: dict[str, Any] = call.given(group_name="node_group")
    if call.option("ignore_errors"):
        fields["ignore_errors"] = call.option("ignore_errors")
    if call.option("no_nplus1_mem"):
        fields["skip_checks"] = ["nplusone_mem"]
    found = fetch(call, "OP_CLUSTER_VERIFY", **fields)
    errors = found.get("errors") or []
    if call.option("json"):
        call.terminal.print(json.dumps(found, indent=2))
    else:
        coded = bool(call.option("error_codes"))
        for line in verified(found, coded=coded):
            call.terminal.print(line)
    return int(bool(errors))


def verified(found: Mapping[str, Any], *, coded: bool = False) -> Iterator[str]:
    """Yield what verify prints.

    Parameters
    ----------
    coded
        Whether each finding is one line with its code, kind and name, for programs.
    """
    checked = (found.get("checked") or {}).items()
    if checked:
        yield "* Verified " + ", ".join(_checked(*one) for one in checked)
    errors = found.get("errors") or []
    warnings = found.get("warnings") or []
    for word, findings in (("ERROR", errors), ("WARNING", warnings)):
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


def verify_disks(call: Call) -> int:
    """Attach disks that should be attached."""
    found = fetch(
        call, "OP_CLUSTER_VERIFY_DISKS", **call.given(group_name="node_group")
    )
    for node, why in found["silent"].items():
        call.terminal.talk(f"Warning: node {node} gives no answer: {why}")
    for name, disk, state in found["degraded"]:
        call.terminal.print(
            f"Disk {disk} of instance '{name}' has one good copy: {state}"
        )
    jobs = zip(found["names"], found["jobs"], strict=True)
    answers = {name: (bool(taken), what) for name, (taken, what) in jobs}
    for name in answers:
        call.terminal.print(f"Activating disks for instance '{name}'")
    if not answers and not found["degraded"]:
        call.terminal.print("All disks that should be attached are")
    return follow_many(call, answers) | int(bool(found["silent"]))


def repair_disk_sizes(call: Call) -> int:
    """Let records take the sizes that devices have."""
    fixed = perform(call, "OP_CLUSTER_REPAIR_DISK_SIZES", instances=call.words)
    for instance, slot, what, value in fixed or ():
        call.terminal.print(f"{instance}: disk/{slot}: {what} is {value} MiB")
    return 0


COMMANDS = (
    Command(
        "verify",
        verify,
        "Check the whole cluster; fail if anything is wrong",
        (),
        (
            Option(("--error-codes",), "a line for programs: CODE:KIND:NAME:MESSAGE"),
            Option(("-g", "--node-group"), "what is about this group alone", "GROUP"),
            Option(
                ("-I", "--ignore-errors"),
                "let findings of this code be warnings",
                "CODE",
                repeats=True,
            ),
            Option(("--no-nplus1-mem",), "do not look whether nodes could be lost"),
            moot("--verbose", "all that is found is told", short="-v"),
            moot("--verify-ssh-clutter", "nodes are reached over TLS, not by ssh"),
            refused("--debug-simulate-errors", "what is not found is not told"),
            *JOB,
        ),
        examples=(
            Example("gnt-cluster verify --error-codes", "for a monitoring plugin"),
        ),
    ),
    Command(
        "verify-disks",
        verify_disks,
        "Attach the disks of instances that should have them, where a node lost them",
        (),
        (Option(("-g", "--node-group"), "of this group alone", "GROUP"), *JOB),
    ),
    Command(
        "repair-disk-sizes",
        repair_disk_sizes,
        "Correct the recorded sizes of disks whose devices have another one",
        (Operand("INSTANCE", 0, None),),
        JOB,
        examples=(Example("gnt-cluster repair-disk-sizes web1", "the disks of web1"),),
    ),
)
