# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup import."""

from collections.abc import Sequence
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fills
from moorage.cli.follow import perform
from moorage.cli.gnt_instance.add import COMMANDS as ADD
from moorage.cli.gnt_instance.add import cards, guest, nodes
from moorage.cli.gnt_instance.disk_options import Given, described
from moorage.cli.operation import first_given
from moorage.cli.option_syntax import numbered
from moorage.cli.options import moot
from moorage.errors import BadInput
from moorage.units import parse_size

_ADD_ALONE = (
    *("os_size", "no_nics", "no_install", "source"),
    *("install_adopted", "start", "forthcoming", "commit", "communication"),
)
"""Options of ``gnt-instance add`` that are not just the same here."""


def restore(call: Call) -> None:
    """Make an instance, or a disk, from an export."""
    (_restore_disk if call.option("disk_alone") else _restore_instance)(call)


def _restore_instance(call: Call) -> None:
    (name,) = call.words
    chosen = perform(
        call,
        mode="import",
        disks=_of_size(call) or disks(call.option("disk")),
        start=call.option("start"),
        **call.fields,
        **cards(call),
        **nodes(call),
        **guest(call),
    )
    call.terminal.print(f"Imported instance {name} on {', '.join(chosen or ())}")


def _of_size(call: Call) -> list[dict[str, Any]]:
    """Return the only disk, where ``-s`` says its size."""
    size = call.option("os_size")
    if size is not None and call.option("disk"):
        raise BadInput("-s and --disk both give the first disk", hint="use --disk only")
    return [] if size is None else [{"size": int(size)}]


def disks(given: Sequence[Given]) -> list[dict[str, Any]]:
    """Return what is asked of the disks, by slot; nothing for those in between.

    Raises
    ------
    BadInput
        If a slot is no number, or stands twice.
    """
    found = numbered("--disk", "disk", given)
    slots = {slot: described(f"disk {slot}", keys) for slot, keys in found.items()}
    if max(slots, default=0) > _MOST:
        raise BadInput(f"no instance has so many disks: --disk {max(slots)}")
    return [slots.get(slot, {}) for slot in range(max(slots, default=-1) + 1)]


_MOST = 99


_INSTANCE_ALONE = (
    *("start", "os_type", "osparams", "hypervisor_parameters", "beparams", "net"),
    *("tags", "ignore_ipolicy", "wait_for_sync", "file_storage_dir", "file_driver"),
    *("force_params", "os_size", "no_nics", "iallocator", "group_name"),
    *("osparams_private", "osparams_secret", "conflicts_check"),
)
"""Options that say nothing of a disk that is imported alone."""
_DISK = (
    *("disk_template", "src_node", "src_path", "rate", "ignore_capacity"),
    "trust_export",
)


def _restore_disk(call: Call) -> None:
    (name,) = call.words
    if flag := first_given(call, _INSTANCE_ALONE):
        raise BadInput(
            f"{flag} is for instances, and --disk-only imports a disk",
            hint="leave it out",
        )
    fields = {field: value for field, value in call.given.items() if field in _DISK}
    if node := call.option("node"):
        fields["node"] = node
    given = disks(call.option("disk"))
    if len(given) > 1:
        raise BadInput("one disk is imported: --disk 0:... describes it")
    asked = given[0] if given else {}
    for key, field in (("size", "size"), ("dev_type", "disk_template")):
        if key in asked:
            fields[field] = asked.pop(key)
    uuid = perform(call, "OP_DISK_IMPORT", name=name, params=asked, **fields)
    call.terminal.print(f"Imported disk {name} ({uuid})")


COMMANDS = (
    Command(
        "import",
        restore,
        (Operand("NAME", field="instance_name"),),
        (
            *fills("--src-node --src-dir=src_path --trust-export --rate --no-nics"),
            Option(("--start",), "start the instance; Ganeti never does"),
            Option(
                ("--disk-only",),
                "NAME is a new disk: import it alone",
                dest="disk_alone",
            ),
            Option(
                ("-s", "--os-size"), "another size of the only disk", "SIZE", parse_size
            ),
            moot(
                "--identify-defaults",
                "what the cluster says just the same is never kept for an instance",
            ),
            moot("--compress", "a dump says itself how it is compressed", "WAY"),
            *(one for one in ADD[0].options if one.name not in _ADD_ALONE),
        ),
        examples={
            "gnt-backup import web1": "as it was, on the node that the planner chooses",
            "gnt-backup import --src-node node2 -n node1 web1": (
                "on another node than the one that has the export"
            ),
            "gnt-backup import --trust-export web1": (
                "with all parameters of an export that nobody else can write to"
            ),
            "gnt-backup import --src-dir web1 -t sharedfile --net 0:mac=auto web2": (
                "under another name, on other storage"
            ),
            "gnt-backup import --disk-only --src-dir disk+data1 data2": (
                "a disk that was exported alone"
            ),
        },
        operation="OP_INSTANCE_CREATE",
        surplus="NAME is what is made; what it is made of: --src-dir EXPORT",
    ),
)
