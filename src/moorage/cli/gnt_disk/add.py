# SPDX-License-Identifier: BSD-2-Clause
"""Make a disk that belongs to nobody, or make one of a volume that is there."""

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import epoch, spindles
from moorage.cli.options import FORCE_PARAMS, IGNORE_CAPACITY, JOB, TAGS
from moorage.errors import BadInput
from moorage.units import parse_size

from .options import ACCESS, MODE, PARAM, PROVIDER

EPOCH = Option(
    ("--epoch",), "that an adopted disk starts with; 0 without it", "N", epoch
)


def _add(call: Call) -> None:
    name = _only_name(call)
    fields = call.given | ({"name": name} if name else {})
    uuid = perform(call, "OP_DISK_ADD", **fields)
    call.terminal.print(f"Added disk {name} ({uuid})" if name else f"Added disk {uuid}")


def _only_name(call: Call) -> str | None:
    """Return the new disk's name: the operand, or ``--name``."""
    given = {*call.words, *filter(None, [call.option("name")])}
    if len(given) > 1:
        raise BadInput("a disk has one name", hint="drop either --name or the operand")
    return next(iter(given), None)


def _adopt(call: Call) -> None:
    fields = call.fields
    uuid = perform(call, "OP_DISK_ADOPT", **fields)
    name = fields.get("name", uuid)
    call.terminal.print(f"Adopted volume {fields['volume']} as disk {name}")


ADD = Command(
    "add",
    _add,
    (Operand("NAME", 0),),
    (
        Option(
            ("-t", "--disk-template"),
            "how the disk is stored: ext, sharedfile...",
            "NAME",
        ),
        Option(("-s", "--size"), "its size: 512M, 10G, 1.5T", "SIZE", parse_size),
        PROVIDER,
        Option(("--pool",), "the storage pool that it is in", "NAME"),
        PARAM,
        ACCESS,
        Option(("--adopt",), "take over a device or volume that is there", "NAME"),
        EPOCH,
        Option(("--name",), "the disk's name, as the operand", "NAME"),
        Option(("-n", "--node"), "the node that is to hold it", "NODE"),
        Option(
            ("-g", "--node-group"),
            "the node group that is to reach it",
            "GROUP",
            dest="group",
        ),
        MODE,
        Option(
            ("--spindles",),
            "physical volumes that it has for itself, with exclusive storage",
            "N",
            spindles,
        ),
        FORCE_PARAMS,
        TAGS,
        IGNORE_CAPACITY,
        *JOB,
    ),
    examples={
        "gnt-disk add -t ext -p san -s 10G data1": "10 GiB on the provider san",
        "gnt-disk add -t ext -p san -s 10G -D pool=fast,trim data2": (
            "with parameters for the provider"
        ),
        "gnt-disk add --pool nas1 -s 10G data3": "in a storage pool",
        "gnt-disk add -t blockdev --adopt /dev/disk/by-id/wwn-5 lun5": (
            "a device that is there already"
        ),
        "gnt-disk add -t ext -p san -s 10G --adopt lun7 --epoch 12 data4": (
            "a volume that is there, whose storage has seen epoch 11"
        ),
    },
)
ADOPT = Command(
    "adopt",
    _adopt,
    (Operand("VOLUME", field="volume"),),
    (
        Option(("--name",), "name of the disk", "NAME"),
        Option(("-t", "--disk-template"), "the disk template", "TEMPLATE"),
        Option(("-p", "--provider"), "the ExtStorage provider", "NAME"),
        Option(("--pool",), "the storage pool", "NAME"),
        Option(
            ("-s", "--size"), "where the storage tells none: 10G", "SIZE", parse_size
        ),
        EPOCH,
        MODE,
        PARAM,
        Option(("-n", "--node"), "the node that has it", "NODE"),
        Option(("-g", "--node-group"), "the group that sees it", "GROUP", dest="group"),
        *JOB,
    ),
    examples={
        "gnt-disk adopt -t sharedfile --name old /srv/shared/old.img": (
            "a file that somebody put there"
        )
    },
)
COMMANDS = (ADD, ADOPT)
