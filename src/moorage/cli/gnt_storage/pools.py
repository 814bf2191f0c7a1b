# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools: named places where disks can be, and who can use them."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli import tags
from moorage.cli.command import Call, Command, Operand
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.listing import Listing
from moorage.cli.operation import Performs, changes, tell_changes
from moorage.cli.option_syntax import key_values, merged, reset
from moorage.cli.options import ASKING, JOB
from moorage.units import format_size

PREFIX = "gnt-storage pool"
LISTING = Listing("pool", ("name", "driver", "groups", "disk_cnt", "size", "free"))
_FIELDS = (
    *("name", "uuid", "template", "provider", "params", "volume_name", "longest"),
    *("groups", "disk_cnt", "size", "total", "free", "disk_list", "tags", "serial_no"),
)


def _add(call: Call) -> None:
    (name,) = call.words
    perform(call, **call.fields)
    call.terminal.print(f"Added storage pool {name}")
    if not call.option("groups"):
        call.terminal.talk(f"No disk can be in it yet: {PREFIX} connect {name} GROUP")


def _modify(call: Call) -> None:
    fields = changes(call, f"{PREFIX} modify --help")
    changed = perform(call, **fields)
    told = ((what, _told(value)) for what, value in changed or ())
    tell_changes(call, f"storage pool {call.words[0]}", told)


def _told(value: Any) -> Any:  # noqa: ANN401
    """Return a value as it is typed."""
    if isinstance(value, dict):
        return ",".join(f"{key}={one}" for key, one in value.items())
    return value


def _shown(pool: dict[str, Any]) -> dict[str, Any]:
    return {
        "Storage pool": pool["name"],
        "UUID": pool["uuid"],
        "Serial number": pool["serial_no"],
        "Disk template": pool["template"],
        **({"Provider": pool["provider"]} if pool["provider"] else {}),
        "Parameters": pool["params"] or "",
        "Volume names": pool["volume_name"] or "the template's own",
        "Longest name": pool["longest"],
        "Node groups": pool["groups"] or "",
        "Disks": pool["disk_list"] or "",
        "Size of its disks": format_size(pool["size"]),
        "Room": _room(pool["total"]),
        "Free room": _room(pool["free"]),
        "Tags": ", ".join(pool["tags"] or ()),
    }


def _room(size: int | None) -> str:
    return "unknown" if size is None else format_size(size)


def _presets(given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return reset(merged(given))


_POOL = (Operand("POOL", field="pool_name"),)
_GROUPS = (*_POOL, Operand("GROUP", 1, None, "groups"))
_PARAM = fill("-D/--param=params", repeats=True, convert=key_values, join=_presets)
_NAMES = (fill("--volume-name", metavar="PATTERN"), fill("--longest"))
_LIST = LISTING.commands(PREFIX, "disk_cnt > 0")
_INFO = LISTING.info(_FIELDS, _shown)

COMMANDS = (
    Command(
        "pool add",
        _add,
        _POOL,
        (
            *fills(
                "-t/--disk-template -p/--provider -g/--node-group=groups",
                "--force-params --tags",
            ),
            _PARAM,
            *_NAMES,
            *JOB,
        ),
        examples={
            f"{PREFIX} add -p san -g default nas1": "what a provider drives",
            f"{PREFIX} add -t sharedfile -D directory=/srv/ssd -g default ssd": (
                "a directory of its own for image files"
            ),
            (
                f"{PREFIX} add -p san --volume-name '{{instance}}-{{short}}' "
                "--longest 18 array"
            ): "for storage that wants short names",
        },
        operation="OP_STORAGE_POOL_ADD",
    ),
    *(one._replace(name=f"pool {one.name}") for one in _LIST),
    _INFO._replace(name="pool info"),
    Command(
        "pool modify",
        _modify,
        _POOL,
        (_PARAM, *_NAMES, *fills("--force-params"), *JOB),
        examples={f"{PREFIX} modify -D tier=hdd nas1": "for disks to come"},
        operation="OP_STORAGE_POOL_SET_PARAMS",
    ),
    Command(
        "pool remove",
        Performs(
            "Removed storage pool {pool_name}", asks="Remove storage pool {pool_name}?"
        ),
        _POOL,
        (*ASKING, *JOB),
        operation="OP_STORAGE_POOL_REMOVE",
    ),
    Command(
        "pool connect",
        Performs("Connected storage pool {pool_name} to {groups}"),
        _GROUPS,
        JOB,
        examples={f"{PREFIX} connect nas1 default rack2": "two groups"},
        operation="OP_STORAGE_POOL_CONNECT",
    ),
    Command(
        "pool disconnect",
        Performs("Disconnected storage pool {pool_name} from {groups}"),
        _GROUPS,
        JOB,
        operation="OP_STORAGE_POOL_DISCONNECT",
    ),
    *(one._replace(name=f"pool {one.name}") for one in tags.commands(PREFIX)),
)
