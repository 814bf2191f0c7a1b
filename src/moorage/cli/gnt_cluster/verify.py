# SPDX-License-Identifier: BSD-2-Clause
"""Checking the cluster, and mending what is on record."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand
from moorage.cli.follow import fetch, perform
from moorage.cli.options import JOB


def verify(call: Call) -> int:
    """Check the whole cluster; the exit status says whether anything is wrong."""
    found = fetch(call, "OP_CLUSTER_VERIFY")
    errors = found.get("errors") or []
    if call.option("json"):
        call.terminal.print(json.dumps(found, indent=2))
    else:
        for line in verified(found):
            call.terminal.print(line)
    return int(bool(errors))


def verified(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what verify prints."""
    checked = (found.get("checked") or {}).items()
    if checked:
        yield "* Verified " + ", ".join(f"{count} {what}" for what, count in checked)
    errors = found.get("errors") or []
    warnings = found.get("warnings") or []
    for word, findings in (("ERROR", errors), ("WARNING", warnings)):
        for one in findings:
            yield f"  - {word}: {one.get('object')}: {one.get('message')}"
            if one.get("hint"):
                yield f"    hint: {one['hint']}"
    told = [
        f"{len(findings)} {word}{'' if len(findings) == 1 else 's'}"
        for word, findings in (("error", errors), ("warning", warnings))
        if findings
    ]
    yield f"* {' and '.join(told)} found" if told else "* No problem found"


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
        JOB,
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
