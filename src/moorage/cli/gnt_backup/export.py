# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup export."""

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.operation import first_given
from moorage.cli.options import JOB, SHUTDOWN_TIMEOUT, moot, refused
from moorage.errors import BadInput
from moorage.units import parse_rate

RATE = Option(("--rate",), "how much a second at most: 50M, 1G", "SIZE", parse_rate)
_INSTANCE_ALONE = ("shutdown", "long_sleep", "remove_instance", "shutdown_timeout")


def _export(call: Call) -> None:
    (name,) = call.words
    if not call.option("disk"):
        perform(call, "OP_BACKUP_EXPORT", instance_name=name, **call.given)
        call.terminal.print(f"Exported instance {name}")
        return
    if flag := first_given(call, _INSTANCE_ALONE):
        raise BadInput(f"{flag} is for instances, and --disk names a disk")
    told = perform(call, "OP_DISK_EXPORT", disk=name, **call.given)
    call.terminal.print(f"Exported disk {name} as {told}")


COMMANDS = (
    Command(
        "export",
        _export,
        (Operand("INSTANCE"),),
        (
            Option(
                ("-n", "--node"),
                "where it is to lie; its own node if not",
                "NODE",
                dest="target_node",
            ),
            Option(
                ("--noshutdown", "--no-shutdown"),
                "copy while the guest runs, all disks as they are at one moment",
                dest="shutdown",
                value=False,
            ),
            Option(
                ("--long-sleep",),
                "keep the guest down until its disks are copied: no snapshots",
            ),
            SHUTDOWN_TIMEOUT,
            Option(
                ("--remove-instance",), "remove the instance when the export is whole"
            ),
            Option(
                ("--ignore-remove-failures",), "remove it although its storage fails"
            ),
            Option(
                ("--format",),
                "qcow2 with a manifest, or what Ganeti's import reads",
                "FORMAT",
                choices=("qcow2", "ganeti"),
            ),
            Option(("--compress",), "compress the dumps, in qcow2", dest="compressed"),
            moot(
                "--transport-compression", "a dump is written where it is made", "WAY"
            ),
            refused(
                "--zero-free-space", "a guest's free space is not its host's business"
            ),
            moot("--zeroing-timeout-fixed", "no free space is zeroed", "SECONDS"),
            moot("--zeroing-timeout-per-mib", "no free space is zeroed", "SECONDS"),
            moot("--force", "nobody is asked", short="-f"),
            Option(
                ("--disk",),
                "the operand names a disk: export that one alone",
                local=True,
            ),
            RATE,
            *JOB,
        ),
        examples={
            "gnt-backup export web1": "shut down for as long as snapshots take",
            "gnt-backup export --noshutdown web1": "the guest runs on",
            "gnt-backup export --format ganeti -n node2 web1": (
                "for Ganeti, on another node that reaches its storage"
            ),
            "gnt-backup export --disk data1": "a disk that no guest writes to",
        },
    ),
)
