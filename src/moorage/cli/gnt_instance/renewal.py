# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance rename, reinstall, recreate-disks: an instance is made anew in part."""

from collections.abc import Mapping
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import fetch, perform, perform_all
from moorage.cli.option_syntax import ident_key_values
from moorage.cli.options import (
    ASKING,
    JOB,
    OVERRIDES,
    moot,
    names,
    overridden,
    refused,
)
from moorage.errors import BadInput
from moorage.units import is_whole, parse_size

from .os_options import FORCE_VARIANT, OS_PARAMETERS, parameters
from .selecting import OPERANDS, SELECTORS, are_named, chosen


def rename(call: Call) -> int:
    """Give an instance another name."""
    old, new = call.words
    told = perform(call, "OP_INSTANCE_RENAME", instance_name=old, new_name=new)
    call.terminal.print(f"Renamed instance {old} to {told}; its volumes keep theirs")
    return 0


def reinstall(call: Call) -> int:
    """Install an OS on the disks of instances."""
    fields: dict[str, Any] = {}
    system = _selected_os(call) if call.option("select_os") else call.option("os_type")
    if system:
        fields["os_type"] = system
    fields |= parameters(call)
    for switch in ("clear_osparams", "clear_osparams_private"):
        if call.option(switch):
            fields[switch] = True
    for gone in ("remove_osparams", "remove_osparams_private"):
        if call.option(gone):
            fields[gone] = call.option(gone)
    found = chosen(call, "Remove all data of the disks of, and reinstall,")
    if are_named(call) and not (call.option("force_multiple") and len(found) > 1):
        told = ", ".join(found)
        question = f"This will reinstall {told} and remove all data of the disks."
        call.ask(f"{question} Continue?")
    ops = {
        name: {"OP_ID": "OP_INSTANCE_REINSTALL", "instance_name": name, **fields}
        for name in found
    }
    return perform_all(call, ops) if ops else 0


def _selected_os(call: Call) -> str:
    """Return the OS that a person chooses from a list.

    Raises
    ------
    BadInput
        If nobody is there to choose, or an OS is named already.
    """
    if call.option("os_type"):
        raise BadInput("-o names the OS, --select-os asks: only one of these goes")
    rows = fetch(call, "OP_OS_DIAGNOSE", output_fields=["name", "valid", "variants"])
    usable = [(name, more) for name, valid, more in rows or () if valid]
    found = [one for name, more in usable for one in _variants(name, more)]
    for number, one in enumerate(found):
        call.terminal.talk(f"{number:3}: {one}")
    answer = call.terminal.reads("Which one? ") if call.terminal.answers else ""
    if not is_whole(answer) or not int(answer) < len(found):
        raise BadInput("no OS was chosen", hint="name one: -o OS")
    return found[int(answer)]


def _variants(name: str, variants: list[str]) -> list[str]:
    return [f"{name}+{one}" for one in variants or ()] or [name]


def recreate(call: Call) -> int:
    """Make new volumes for disks."""
    (name,) = call.words
    fields: dict[str, Any] = {}
    if call.option("disk"):
        given = call.option("disk")
        fields["disks"] = [[ident, _changes(keys)] for ident, keys in given]
    if call.option("node"):
        primary, _, secondary = call.option("node").partition(":")
        fields["nodes"] = [one for one in (primary, secondary) if one]
    more = overridden(call)
    perform(call, "OP_INSTANCE_RECREATE_DISKS", instance_name=name, **fields, **more)
    return 0


def _changes(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a new volume is to have, its size in MiB.

    Raises
    ------
    BadInput
        If its spindles are no number.
    """
    found = dict(keys)
    if "size" in found:
        found["size"] = int(parse_size(str(found["size"])))
    if "spindles" in found:
        if not is_whole(str(found["spindles"])):
            raise BadInput(f"'{found['spindles']}' is not a number of spindles")
        found["spindles"] = int(found["spindles"])
    return found


COMMANDS = (
    Command(
        "rename",
        rename,
        "Give an instance that is down another name; its volumes keep theirs",
        (Operand("INSTANCE"), Operand("NAME")),
        (
            moot("--no-ip-check", "nobody pings an address"),
            moot("--no-name-check", "no name is resolved"),
            moot("--force", "nobody is asked", short="-f"),
            *JOB,
        ),
        examples=(Example("gnt-instance rename web1 web7", "web1 must be down"),),
    ),
    Command(
        "reinstall",
        reinstall,
        "Install an OS on the disks again: what they hold is lost",
        OPERANDS,
        (
            Option(("-o", "--os-type"), "another OS: OS or OS+VARIANT", "OS"),
            Option(("--select-os",), "choose the OS from a list"),
            FORCE_VARIANT,
            *OS_PARAMETERS,
            Option(("--clear-os-parameters",), "forget its own", dest="clear_osparams"),
            Option(
                ("--clear-os-parameters-private",),
                "forget its own private ones",
                dest="clear_osparams_private",
            ),
            Option(
                ("--remove-os-parameters",),
                "forget some of its own",
                "KEY,...",
                names,
                dest="remove_osparams",
            ),
            Option(
                ("--remove-os-parameters-private",),
                "forget some of its own private ones",
                "KEY,...",
                names,
                dest="remove_osparams_private",
            ),
            *SELECTORS,
            *ASKING,
            *JOB,
        ),
        examples=(
            Example("gnt-instance reinstall -f web1", "the OS that it has"),
            Example("gnt-instance reinstall -o debian web1", "another OS"),
        ),
    ),
    Command(
        "recreate-disks",
        recreate,
        "Make new, empty volumes for disks whose data is lost",
        (Operand("INSTANCE"),),
        (
            Option(
                ("--disk",),
                "one of them, by slot, name or uuid; size=, mode=, spindles= change it",
                "N[:size=SIZE,...]",
                ident_key_values,
                repeats=True,
            ),
            Option(
                ("-n", "--node"),
                "where the instance and its local disks go; with mirrored ones, both",
                "A[:B]",
            ),
            refused(
                "--iallocator",
                "new volumes are made where they were, or on the nodes of -n",
                "NAME",
                short="-I",
            ),
            *OVERRIDES,
            *ASKING,
            *JOB,
        ),
        examples=(
            Example("gnt-instance recreate-disks web1", "all of its disks"),
            Example(
                "gnt-instance recreate-disks -n node2 web1", "on node2: node1 burnt"
            ),
        ),
    ),
)
