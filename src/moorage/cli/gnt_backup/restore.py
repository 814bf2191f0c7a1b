# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup import."""

from collections.abc import Sequence
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.gnt_instance.add import COMMAND as ADD
from moorage.cli.gnt_instance.add import cards, guest, nodes
from moorage.cli.gnt_instance.disk_options import Given, described
from moorage.cli.options import moot, overridden, refused
from moorage.errors import BadInput
from moorage.units import is_whole, parse_size

from .export import RATE

_AS_ADD = (
    *("os_parameters_private", "os_parameters_secret", "force_variant"),
    *("opportunistic_locking", "helper_startup_timeout", "helper_shutdown_timeout"),
    *("disk_template", "disk", "node", "os_type", "os_parameters"),
    *("hypervisor_parameters", "backend_parameters", "net", "tags"),
    *("ignore_ipolicy", "ignore_capacity", "no_ip_check", "no_name_check"),
    *("no_conflicts_check", "no_wait_for_sync", "file_storage_dir", "file_driver"),
    *("force_params", "submit", "print_jobid", "dry_run", "priority", "reason"),
    *("json", "debug"),
)
"""Options that are those of ``gnt-instance add``."""


def restore(call: Call) -> int:
    """Make an instance, or a disk, from an export."""
    (name,) = call.words
    if call.option("disk_alone"):
        return _restore_disk(call, name)
    own = call.option("backend_parameters") or {}
    fields: dict[str, Any] = call.given(
        disk_template="disk_template",
        os_type="os_type",
        iallocator="iallocator",
        tags="tags",
        file_storage_dir="file_storage_dir",
        file_driver="file_driver",
        src_node="src_node",
        src_path="src_dir",
        rate="rate",
    )
    given = {key: value for key, value in own.items() if value != "default"}
    chosen = perform(
        call,
        "OP_INSTANCE_CREATE",
        instance_name=name,
        mode="import",
        disks=_of_size(call) or disks(call.option("disk") or ()),
        beparams=given,
        start=bool(call.option("start")),
        **({"force_params": True} if call.option("force_params") else {}),
        **({"no_nics": True} if call.option("no_nics") else {}),
        **fields,
        **cards(call),
        **nodes(call),
        **guest(call),
        **overridden(call),
    )
    call.terminal.print(f"Imported instance {name} on {', '.join(chosen or ())}")
    return 0


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
    slots: dict[int, dict[str, Any]] = {}
    for ident, keys in given:
        if not is_whole(ident):
            raise BadInput(f"'{ident}' is not a disk's number, in --disk {ident}:...")
        if int(ident) in slots:
            raise BadInput(f"--disk {ident} is given twice")
        slots[int(ident)] = described(f"disk {ident}", keys)
    if max(slots, default=0) > _MOST:
        raise BadInput(f"no instance has so many disks: --disk {max(slots)}")
    return [slots.get(slot, {}) for slot in range(max(slots, default=-1) + 1)]


_MOST = 99


_INSTANCE_ALONE = (
    *("start", "os_type", "os_parameters", "hypervisor_parameters"),
    *("backend_parameters", "net", "tags", "ignore_ipolicy", "no_wait_for_sync"),
    *("file_storage_dir", "file_driver", "force_params", "os_size", "no_nics"),
)
"""Options that say nothing of a disk that is imported alone."""


def _restore_disk(call: Call, name: str) -> int:
    wrong = [one for one in _INSTANCE_ALONE if call.option(one)]
    if wrong:
        flag = wrong[0].replace("_", "-")
        raise BadInput(
            f"--{flag} is for instances, and --disk-only imports a disk",
            hint="leave it out",
        )
    fields = call.given(
        disk_template="disk_template",
        src_node="src_node",
        src_path="src_dir",
        rate="rate",
        node="node",
        ignore_capacity="ignore_capacity",
    )
    given = disks(call.option("disk") or ())
    if len(given) > 1:
        raise BadInput("one disk is imported: --disk 0:... describes it")
    asked = given[0] if given else {}
    size = {"size": asked.pop("size")} if "size" in asked else {}
    template = {"disk_template": asked.pop("dev_type")} if "dev_type" in asked else {}
    uuid = perform(
        call, "OP_DISK_IMPORT", name=name, params=asked, **fields | size | template
    )
    call.terminal.print(f"Imported disk {name} ({uuid})")
    return 0


_WHERE = "an instance is imported where its export lies, and -n is a node that sees it"

COMMAND = Command(
    "import",
    restore,
    "Make an instance from an export: what is not said here, the export says",
    (Operand("NAME"),),
    (
        Option(("--src-node",), "where the export lies", "NODE"),
        Option(("--src-dir",), "its name or directory; NAME if not", "DIR"),
        Option(("--start",), "start the instance; Ganeti never does"),
        Option(
            ("--disk-only",), "NAME is a new disk: import it alone", dest="disk_alone"
        ),
        RATE,
        Option(
            ("-s", "--os-size"), "another size of the only disk", "SIZE", parse_size
        ),
        Option(("--no-nics",), "no network card, whatever the export says"),
        moot(
            "--identify-defaults",
            "what the cluster says just the same is never kept for an instance",
        ),
        moot("--compress", "a dump says itself how it is compressed", "WAY"),
        refused("--node-group", _WHERE, "GROUP", short="-g"),
        refused("--iallocator", _WHERE, "NAME", short="-I"),
        *(one for one in ADD.options if one.name in _AS_ADD),
    ),
    examples=(
        Example("gnt-backup import web1", "as it was, where its export lies"),
        Example(
            "gnt-backup import --src-dir web1 -t sharedfile --net 0:mac=auto web2",
            "under another name, on other storage",
        ),
        Example(
            "gnt-backup import --disk-only --src-dir disk+data1 data2",
            "a disk that was exported alone",
        ),
    ),
    surplus="NAME is what is made; what it is made of: --src-dir EXPORT",
)
