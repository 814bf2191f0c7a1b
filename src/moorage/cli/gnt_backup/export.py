# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup export."""

from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.options import JOB, SHUTDOWN_TIMEOUT, moot, refused
from moorage.errors import BadInput
from moorage.units import parse_size

RATE = Option(("--rate",), "how much a second at most: 50M, 1G", "SIZE", parse_size)
_INSTANCE_ALONE = ("no_shutdown", "long_sleep", "remove_instance", "shutdown_timeout")
_SWITCHES = {
    "no_shutdown": ("shutdown", False),
    "long_sleep": ("long_sleep", True),
    "remove_instance": ("remove_instance", True),
    "ignore_remove_failures": ("ignore_remove_failures", True),
    "compress": ("compressed", True),
}


def export(call: Call) -> int:
    """Copy an instance's disks, or one disk, into a directory of a node."""
    (name,) = call.words
    fields: dict[str, Any] = call.given(
        target_node="node",
        format="format",
        rate="rate",
        shutdown_timeout="shutdown_timeout",
    )
    for option, (field, value) in _SWITCHES.items():
        if call.option(option):
            fields[field] = value
    if call.option("disk"):
        return _export_disk(call, name, fields)
    perform(call, "OP_BACKUP_EXPORT", instance_name=name, **fields)
    call.terminal.print(f"Exported instance {name}")
    return 0


def _export_disk(call: Call, name: str, fields: dict[str, Any]) -> int:
    wrong = [one for one in _INSTANCE_ALONE if call.option(one)]
    if wrong:
        flag = wrong[0].replace("_", "-").replace("no-shutdown", "noshutdown")
        raise BadInput(f"--{flag} is for instances, and --disk names a disk")
    told = perform(call, "OP_DISK_EXPORT", disk=name, **fields)
    call.terminal.print(f"Exported disk {name} as {told}")
    return 0


COMMAND = Command(
    "export",
    export,
    "Copy an instance's disks into a directory of a node",
    (Operand("INSTANCE"),),
    (
        Option(("-n", "--node"), "where it is to lie; its own node if not", "NODE"),
        Option(
            ("--noshutdown", "--no-shutdown"),
            "copy while the guest runs, all disks as they are at one moment",
            dest="no_shutdown",
        ),
        Option(
            ("--long-sleep",),
            "keep the guest down until its disks are copied: no snapshots",
        ),
        SHUTDOWN_TIMEOUT,
        Option(("--remove-instance",), "remove the instance when the export is whole"),
        Option(("--ignore-remove-failures",), "remove it although its storage fails"),
        Option(
            ("--format",),
            "qcow2 with a manifest, or what Ganeti's import reads",
            "FORMAT",
            choices=("qcow2", "ganeti"),
        ),
        Option(("--compress",), "compress the dumps, in qcow2"),
        moot("--transport-compression", "a dump is written where it is made", "WAY"),
        refused("--zero-free-space", "a guest's free space is not its host's business"),
        moot("--zeroing-timeout-fixed", "no free space is zeroed", "SECONDS"),
        moot("--zeroing-timeout-per-mib", "no free space is zeroed", "SECONDS"),
        moot("--force", "nobody is asked", short="-f"),
        Option(("--disk",), "the operand names a disk: export that one alone"),
        RATE,
        *JOB,
    ),
    examples=(
        Example("gnt-backup export web1", "shut down for as long as snapshots take"),
        Example("gnt-backup export --noshutdown web1", "the guest runs on"),
        Example(
            "gnt-backup export --format ganeti -n node2 web1",
            "for Ganeti, on another node that reaches its storage",
        ),
        Example("gnt-backup export --disk data1", "a disk that no guest writes to"),
    ),
)
