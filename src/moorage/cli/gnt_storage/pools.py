# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools: named places where disks can be, and who can use them."""

from typing import Any

from moorage.cli import details, tags
from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.listing import Listing
from moorage.cli.option_syntax import key_values, merged
from moorage.cli.options import (
    ASKING,
    DEBUG,
    FORCE_PARAMS,
    JOB,
    JSON,
    forced,
    names,
)
from moorage.errors import BadInput
from moorage.units import format_size, is_whole

PREFIX = "gnt-storage pool"
LISTING = Listing("pool", ("name", "driver", "groups", "disk_cnt", "size", "free"))
_INFO = (
    *("name", "uuid", "template", "provider", "params", "volume_name", "longest"),
    *("groups", "disk_cnt", "size", "total", "free", "disk_list", "tags", "serial_no"),
)


def add(call: Call) -> int:
    """Make a pool."""
    (name,) = call.words
    fields = call.given(
        disk_template="disk_template",
        provider="provider",
        groups="node_group",
        tags="tags",
    )
    perform(
        call,
        "OP_STORAGE_POOL_ADD",
        pool_name=name,
        **fields,
        **_presets(call),
        **forced(call),
    )
    call.terminal.print(f"Added storage pool {name}")
    if not fields.get("groups"):
        call.terminal.talk(f"No disk can be in it yet: {PREFIX} connect {name} GROUP")
    return 0


def _presets(call: Call) -> dict[str, Any]:
    """Return what is preset for disks to come, as far as it was given."""
    found = call.given(volume_name="volume_name", longest="longest")
    params = merged(call.option("param"))
    if params:
        found["params"] = {
            key: "default" if value is None else value for key, value in params.items()
        }
    return found


def modify(call: Call) -> int:
    """Change what a pool presets."""
    (name,) = call.words
    fields = _presets(call)
    if not fields:
        raise BadInput("nothing to change", hint=f"{PREFIX} modify --help")
    changed = perform(
        call, "OP_STORAGE_POOL_SET_PARAMS", pool_name=name, **fields, **forced(call)
    )
    call.terminal.print(f"Modified storage pool {name}")
    for what, value in changed or ():
        call.terminal.print(f" - {what:<5} -> {_told(value)}")
    return 0


def _told(value: Any) -> Any:  # noqa: ANN401
    """Return a value as it is typed."""
    if isinstance(value, dict):
        return ",".join(f"{key}={one}" for key, one in value.items())
    return value


def remove(call: Call) -> int:
    """Remove a pool that no disk is in."""
    (name,) = call.words
    call.ask(f"Remove storage pool {name}?")
    perform(call, "OP_STORAGE_POOL_REMOVE", pool_name=name)
    call.terminal.print(f"Removed storage pool {name}")
    return 0


def connect(call: Call) -> int:
    """Let the disks of a pool be used in node groups."""
    name, *groups = call.words
    perform(call, "OP_STORAGE_POOL_CONNECT", pool_name=name, groups=groups)
    call.terminal.print(f"Connected storage pool {name} to {', '.join(groups)}")
    return 0


def disconnect(call: Call) -> int:
    """Let no disk of a pool be used in node groups any more."""
    name, *groups = call.words
    perform(call, "OP_STORAGE_POOL_DISCONNECT", pool_name=name, groups=groups)
    call.terminal.print(f"Disconnected storage pool {name} from {', '.join(groups)}")
    return 0


def info(call: Call) -> int:
    """Print all that is known of some pools."""
    return details.show(call, details.look_up(call, "pool", _INFO), _shown)


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


def _length(text: str) -> int:
    if not is_whole(text):
        raise BadInput(f"'{text[:40]}' is not a number of characters")
    return int(text)


_POOL = (Operand("POOL"),)
_GROUPS = (*_POOL, Operand("GROUP", 1, None))
_PARAM = Option(
    ("-D", "--param"),
    "parameters of its disks, where they are given no others; may be repeated",
    "KEY=VALUE,...",
    key_values,
    repeats=True,
)
_NAMES = (
    Option(
        ("--volume-name",),
        "how volumes are called: {uuid}, {short}, {instance}, {index}, {pool}",
        "PATTERN",
    ),
    Option(("--longest",), "characters that such a name may have", "NUMBER", _length),
)
_LIST = LISTING.commands(PREFIX, "disk_cnt > 0")

COMMANDS = (
    Command(
        "pool add",
        add,
        "Make a storage pool of a disk template or a provider",
        _POOL,
        (
            Option(("-t", "--disk-template"), "its disks' template", "NAME"),
            Option(("-p", "--provider"), "its ExtStorage provider", "NAME"),
            _PARAM,
            *_NAMES,
            Option(
                ("-g", "--node-group"),
                "node groups to connect it to, with commas",
                "GROUPS",
                names,
            ),
            FORCE_PARAMS,
            Option(("--tags",), "tags, with commas", "TAGS", names),
            *JOB,
        ),
        examples=(
            Example(f"{PREFIX} add -p san -g default nas1", "what a provider drives"),
            Example(
                f"{PREFIX} add -t sharedfile -D directory=/srv/ssd -g default ssd",
                "a directory of its own for image files",
            ),
            Example(
                f"{PREFIX} add -p san --volume-name '{{instance}}-{{short}}' "
                "--longest 18 array",
                "for storage that wants short names",
            ),
        ),
    ),
    *(one._replace(name=f"pool {one.name}") for one in _LIST),
    Command(
        "pool info",
        info,
        "Show all about storage pools",
        (Operand("POOL", 0, None),),
        (JSON, DEBUG),
        ("pool show",),
    ),
    Command(
        "pool modify",
        modify,
        "Change what a storage pool presets for disks to come",
        _POOL,
        (_PARAM, *_NAMES, FORCE_PARAMS, *JOB),
        examples=(Example(f"{PREFIX} modify -D tier=hdd nas1", "for disks to come"),),
    ),
    Command(
        "pool remove",
        remove,
        "Remove a storage pool that no disk is in",
        _POOL,
        (*ASKING, *JOB),
    ),
    Command(
        "pool connect",
        connect,
        "Let the disks of a storage pool be used in node groups",
        _GROUPS,
        JOB,
        examples=(Example(f"{PREFIX} connect nas1 default rack2", "two groups"),),
    ),
    Command(
        "pool disconnect",
        disconnect,
        "Let no disk of a storage pool be used in node groups any more",
        _GROUPS,
        JOB,
    ),
    *(one._replace(name=f"pool {one.name}") for one in tags.commands(PREFIX)),
)
