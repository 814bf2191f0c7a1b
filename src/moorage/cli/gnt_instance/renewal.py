# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance rename, reinstall, recreate-disks: an instance is made anew in part."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import fetch, perform_all
from moorage.cli.operation import Performs
from moorage.cli.option_syntax import ident_key_values, spindles
from moorage.cli.options import ASKING, JOB, moot
from moorage.errors import BadInput
from moorage.units import is_whole, parse_size

from .os_options import FORCE_VARIANT, OS_PARAMETERS
from .selecting import INSTANCE, OPERANDS, SELECTORS, are_named, chosen


def _reinstall(call: Call) -> int:
    fields = call.given
    if call.option("select_os"):
        fields["os_type"] = _selected_os(call)
    found = chosen(call, "Remove all data of the disks of, and reinstall,")
    if are_named(call) and not (call.option("force_multiple") and len(found) > 1):
        told = ", ".join(found)
        question = f"This will reinstall {told} and remove all data of the disks."
        call.ask(f"{question} Continue?")
    each = {name: {"instance_name": name, **fields} for name in found}
    return perform_all(call, each)


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


def _disks(given: Sequence[tuple[str, dict[str, Any]]]) -> list[list[Any]]:
    return [[ident, _changes(keys)] for ident, keys in given]


def _pair(text: str) -> list[str]:
    """Return the nodes of ``A:B``, or the one of ``A``."""
    primary, _, secondary = text.partition(":")
    return [one for one in (primary, secondary) if one]


def _changes(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a new volume is to have, its size in MiB."""
    found = dict(keys)
    for name, convert in (("size", parse_size), ("spindles", spindles)):
        if name in found:
            found[name] = int(convert(str(found[name])))
    return found


COMMANDS = (
    Command(
        "rename",
        Performs(
            "Renamed instance {instance_name} to {result}; its volumes keep theirs"
        ),
        (*INSTANCE, Operand("NAME", field="new_name")),
        (
            moot("--no-ip-check", "nobody pings an address"),
            moot("--no-name-check", "no name is resolved"),
            moot("--force", "nobody is asked", short="-f"),
            *JOB,
        ),
        examples={"gnt-instance rename web1 web7": "web1 must be down"},
        operation="OP_INSTANCE_RENAME",
    ),
    Command(
        "reinstall",
        _reinstall,
        OPERANDS,
        (
            *fills(
                "-o/--os-type --clear-os-parameters=clear_osparams",
                "--clear-os-parameters-private=clear_osparams_private",
            ),
            fill("--remove-os-parameters=remove_osparams", metavar="KEY,..."),
            fill(
                "--remove-os-parameters-private=remove_osparams_private",
                metavar="KEY,...",
            ),
            Option(("--select-os",), "choose the OS from a list"),
            FORCE_VARIANT,
            *OS_PARAMETERS,
            *SELECTORS,
            *ASKING,
            *JOB,
        ),
        examples={
            "gnt-instance reinstall -f web1": "the OS that it has",
            "gnt-instance reinstall -o debian web1": "another OS",
        },
        operation="OP_INSTANCE_REINSTALL",
    ),
    Command(
        "recreate-disks",
        Performs(),
        INSTANCE,
        (
            fill(
                "--disk=disks",
                help="one of them, by slot, name or uuid; size=, mode=, spindles= "
                "change it",
                metavar="N[:size=SIZE,...]",
                convert=ident_key_values,
                repeats=True,
                join=_disks,
            ),
            fill("-n/--node=nodes", convert=_pair, metavar="A[:B]"),
            *fills("-I/--iallocator --ignore-ipolicy --ignore-capacity"),
            *ASKING,
            *JOB,
        ),
        examples={
            "gnt-instance recreate-disks web1": "all of its disks",
            "gnt-instance recreate-disks -n node2 web1": "on node2: node1 burnt",
        },
        operation="OP_INSTANCE_RECREATE_DISKS",
    ),
)
