# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance modify."""

from typing import Any

from moorage.cli import nic_options
from moorage.cli.command import Call, Command, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.operation import changes, tell_changes
from moorage.cli.option_syntax import key_values, reset, text_keys
from moorage.cli.options import (
    BACKEND_PARAMETERS,
    JOB,
    NO_WAIT_FOR_SYNC,
    YES,
    moot,
    refused,
)
from moorage.errors import BadInput, WrongState

from . import disk_options
from .disk_options import disk_option
from .os_options import FORCE_VARIANT, NO_CHANNEL, OS_PARAMETERS
from .selecting import INSTANCE

_NOTE = (
    "Please don't forget that most parameters take effect only at the next "
    "(re)start of the instance initiated by ganeti; restarting from within the "
    "instance will not be enough."
)

_AT_START = ("be/", "hv/")
"""What a guest is given when it starts; disks come and go while it runs."""


def _modify(call: Call) -> None:
    (name,) = call.words
    hint = "gnt-instance modify --help lists what there is"
    fields = changes(call, hint, "nothing to modify", **_state(call))
    for action, which, _ in call.option("disks"):
        if action == "remove":
            word = f"disk {which}" if which != -1 else "the last disk"
            call.warn(f"This will remove {word} of {name} and all its data. Continue?")
    _check_unplugged(call, name)
    result = perform(call, **fields)
    if result:
        tell_changes(call, f"instance {name}", result)
    if any(what.startswith(_AT_START) for what, _ in result or ()):
        call.terminal.print(_NOTE)


def _state(call: Call) -> dict[str, bool]:
    """Return whether nothing of the instance is to run, if that is said.

    Raises
    ------
    BadInput
        If both are said.
    """
    given = [word for word in ("offline", "online") if call.option(word)]
    if len(given) > 1:
        raise BadInput("--offline and --online do not go together")
    return {"offline": "offline" in given} if given else {}


def _check_unplugged(call: Call, name: str) -> None:
    """Refuse ``--no-hotplug`` for disks or cards of a guest that runs.

    Raises
    ------
    WrongState
        If it would have to be plugged or unplugged.
    """
    devices = call.option("disks") or call.option("nics")
    if not (devices and call.option("no_hotplug")):
        return
    wanted = ["|", ["==", "name", name], ["==", "uuid", name]]
    if any(row["oper_state"] for row in call.rows("instance", ["oper_state"], wanted)):
        raise WrongState(
            f"instance {name} is running: its disks and cards change at once, or not "
            "at all",
            hint=f"leave --no-hotplug out, or gnt-instance shutdown {name} first",
        )


def hypervisor_keys(text: str) -> dict[str, Any]:
    """Return the keys of ``-H kvm:acpi=false``, or without the hypervisor's name."""
    ident, colon, rest = text.partition(":")
    return key_values(rest if colon and "=" not in ident else text)


COMMANDS = (
    Command(
        "modify",
        _modify,
        INSTANCE,
        (
            fill(
                "--disk=disks",
                help="N:add,size=..., N:attach,name=..., N:detach, N:remove, "
                "N:modify,...; N may be a name or uuid where the disk is there already",
                repeats=True,
                join=disk_options.changes,
                convert=disk_option,
                metavar="N:ACTION,KEY=VALUE,...",
            ),
            nic_options.MODIFIED,
            nic_options.CONFLICTS,
            BACKEND_PARAMETERS,
            fill(
                "-H/--hypervisor-parameters=hvparams",
                convert=lambda text: reset(hypervisor_keys(text)),
            ),
            *OS_PARAMETERS[:2],
            *fills(
                "-t/--disk-template --pool -n/--node=remote_node --rate",
                "-o/--os-type=os_name --file-storage-dir --hotplug",
                "--hotplug-if-possible --keep-disks",
                "--ignore-ipolicy --ignore-capacity --force-params",
                "-m/--runtime-memory=runtime_mem",
            ),
            fill("-e/--ext-params", convert=text_keys),
            fill("--new-primary=pnode", metavar="NODE"),
            Option(
                ("--no-hotplug",), "plug nothing in or out: refused while a guest runs"
            ),
            Option(("--offline",), "mark it as offline: nothing is to run"),
            Option(("--online",), "take that mark away"),
            NO_WAIT_FOR_SYNC,
            FORCE_VARIANT,
            moot("--file-driver", "QEMU itself opens image files", "NAME"),
            refused("--iallocator", "-n names the second node", "NAME", short="-I"),
            refused("--communication", NO_CHANNEL, "yes|no", short="-c"),
            fill("-f/--force"),
            YES,
            *JOB,
        ),
        examples={
            "gnt-instance modify --disk add:size=5G web1": (
                "one disk more, of the kind that web1 has"
            ),
            "gnt-instance modify --disk 1:detach web1": (
                "take its second disk away; the data stays"
            ),
            "gnt-instance modify --disk 1:attach,name=data1 web2": "give it to another",
            "gnt-instance modify -t ext -e provider=san web1": (
                "bring all its disks to the provider san"
            ),
            "gnt-instance modify --net add:network=lan,ip=pool web1": (
                "one network card more, with an address of the network lan"
            ),
            "gnt-instance modify -B memory=2G,vcpus=4 web1": "from the next start",
        },
        operation="OP_INSTANCE_SET_PARAMS",
    ),
)
