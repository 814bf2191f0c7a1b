# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup export."""

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.operation import first_given
from moorage.cli.options import JOB, moot, refused
from moorage.errors import BadInput

_INSTANCE_ALONE = ("shutdown", "long_sleep", "remove_instance", "shutdown_timeout")


def _export(call: Call) -> None:
    (name,) = call.words
    if not call.option("disk"):
        perform(call, instance_name=name, **call.given)
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
            *fills(
                "-n/--node=target_node --long-sleep --shutdown-timeout",
                "--remove-instance --ignore-remove-failures --format",
                "--compress=compressed --rate",
            ),
            fill(
                "--noshutdown/--no-shutdown=shutdown",
                help="copy while the guest runs, all disks as they are at one moment",
                value=False,
            ),
            moot(
                "--transport-compression", "a dump is written where it is made", "WAY"
            ),
            refused(
                "--zero-free-space", "a guest's free space is not its host's business"
            ),
            moot("--zeroing-timeout-fixed", "no free space is zeroed", "SECONDS"),
            moot("--zeroing-timeout-per-mib", "no free space is zeroed", "SECONDS"),
            moot("--force", "nobody is asked", short="-f"),
            Option(("--disk",), "the operand names a disk: export that one alone"),
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
        operation="OP_BACKUP_EXPORT",
    ),
)
