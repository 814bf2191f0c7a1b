# SPDX-License-Identifier: BSD-2-Clause
"""Bring a disk's data to other storage."""

from typing import Any

from moorage.cli.command import Call, Command, Example, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import merged, text_values
from moorage.cli.options import (
    FORCE_PARAMS,
    JOB,
    OVERRIDES,
    forced,
    overridden,
)
from moorage.errors import BadInput

from .options import DISK, PARAM, RATE


def convert(call: Call) -> int:
    """Bring a disk's data to other storage, running or not."""
    (disk,) = call.words
    fields = _target(call)
    if not fields:
        raise BadInput(
            "which storage is the disk to have?",
            hint="add -t sharedfile, -t ext -p ...",
        )
    fields |= call.given(node="node", rate="rate")
    perform(
        call, "OP_DISK_CONVERT", disk=disk, **fields, **forced(call), **overridden(call)
    )
    call.terminal.print(f"Converted disk {disk}")
    return 0


def _target(call: Call) -> dict[str, Any]:
    """Return what the options say of the new storage."""
    fields = call.given(
        disk_template="disk_template",
        provider="provider",
        access="access",
        adopt="adopt",
    )
    params = merged(call.option("param"))
    return {**fields, **({"params": text_values(params)} if params else {})}


TARGET = (
    Option(
        ("-t", "--disk-template"),
        "how the data is to be stored; without it, as now",
        "NAME",
    ),
    Option(("-p", "--provider"), "ExtStorage provider, for ext", "NAME"),
    PARAM,
    Option(
        ("--access",),
        "how a guest reaches it",
        "HOW",
        choices=("kernelspace", "userspace"),
    ),
    FORCE_PARAMS,
)

COMMANDS = (
    Command(
        "convert",
        convert,
        "Bring a disk's data to other storage, also while its instance runs",
        (DISK,),
        (
            *TARGET,
            Option(("--adopt",), "a device to overwrite, not a new volume", "PATH"),
            Option(("-n", "--node"), "the node that does the work", "NODE"),
            RATE,
            *OVERRIDES,
            *JOB,
        ),
        examples=(
            Example("gnt-disk convert -t ext -p san data1", "to the provider san"),
            Example(
                "gnt-disk convert -t sharedfile --rate 50M data1",
                "to an image file, at most 50 MiB a second",
            ),
        ),
    ),
)
