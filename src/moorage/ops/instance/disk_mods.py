# SPDX-License-Identifier: BSD-2-Clause
"""Changes of an instance's disks, as a request names them."""

from collections.abc import Collection
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace as with_fields

from moorage.errors import BadInput
from moorage.model import Config, Disk
from moorage.ops.disk.rename import renamed
from moorage.ops.volumes import disk_words
from moorage.ops.volumes.disk_params import reparametrised
from moorage.units import is_whole

Action = Literal["add", "attach", "modify", "remove", "detach"]
ACTIONS: tuple[Action, ...] = get_args(Action)


class Mod(Struct, frozen=True):
    """One change of one disk.

    Attributes
    ----------
    ident
        For a new disk, the slot (-1 is the end); for one that is there, its slot,
        name or uuid.
    params
        As they were given.
    """

    action: Action
    ident: str
    params: dict[str, Any]


def parse_mods(given: list[list[Any]]) -> list[Mod]:
    """Return the changes of a request in Ganeti's two forms.

    ``[action, ident, params]``, or the old ``[action or slot, params]``.

    Raises
    ------
    BadInput
        If an action is not known, or takes no parameters and got some.
    """
    mods = []
    for one in given:
        if len(one) == 3:
            action, ident, params = one
        elif len(one) == 2 and one[0] in ACTIONS:
            action, ident, params = one[0], -1, one[1]
        elif len(one) == 2:
            action, ident, params = "modify", one[0], one[1]
        else:
            raise BadInput(f"a disk change is [action, disk, parameters], not {one}")
        mods.append(_mod(action, str(ident), dict(params or {})))
    return mods


def _mod(action: str, ident: str, params: dict[str, Any]) -> Mod:
    if action not in ACTIONS:
        raise BadInput(
            f"a disk's change is one of {', '.join(ACTIONS)}, not '{action}'"
        )
    if action in ("remove", "detach") and params:
        raise BadInput(f"'{action}' of a disk takes no parameters: '{min(params)}'")
    if action == "attach" and (len(params) != 1 or params.keys() - {"name", "uuid"}):
        raise BadInput(
            "a disk to attach is named by name=… or uuid=…, exactly one",
            hint="--disk N:attach,name=NAME, or N:attach,uuid=UUID",
        )
    if action in ("add", "attach") and not is_whole(ident):
        raise BadInput(f"a new disk goes to a slot: a number, not '{ident}'")
    if action == "modify" and not params:
        raise BadInput(f"nothing to modify in disk {ident}", hint="--disk N:mode=ro")
    if action == "modify" and "size" in params:
        raise BadInput(
            "Disk size change not possible, use grow-disk", hint="gnt-disk grow"
        )
    return Mod(action, ident, params)


def completed(mod: Mod, template: str | None, shared: dict[str, Any]) -> Mod:
    """Return a change whose new disk has template, provider and pool, if any is meant.

    A disk that names none is like the others of the instance, if they are all alike.
    """
    if mod.action != "add" or mod.params.get("pool"):
        return mod
    named = mod.params.get("dev_type") or template
    if named and named != shared.get("dev_type"):
        return with_fields(mod, params={**mod.params, "dev_type": named})
    others = shared.get("provider")
    if mod.params.get("provider", others) != others:
        shared = {key: value for key, value in shared.items() if key != "pool"}
    return with_fields(mod, params={**shared, **mod.params})


def parameters(mod: Mod) -> dict[str, Any]:
    """Return what a modification changes of a template's or provider's parameters."""
    return {k: v for k, v in mod.params.items() if k not in ("mode", "name")}


def modified(
    config: Config, disk: Disk, mod: Mod, renamed_too: Collection[str] = ()
) -> dict[str, Any]:
    """Return the new fields of a disk; others get other names at the same moment."""
    found: dict[str, Any] = {}
    if "mode" in mod.params:
        found["mode"] = disk_words.checked_mode(mod.params["mode"])
    if "name" in mod.params:
        found |= renamed(config, disk, mod.params["name"], renamed_too)
    rest = parameters(mod)
    if rest:
        found |= reparametrised(disk, rest)
    return found
