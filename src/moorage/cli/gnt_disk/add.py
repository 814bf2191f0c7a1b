# SPDX-License-Identifier: BSD-2-Clause
"""Make a disk that belongs to nobody, or make one of a volume that is there."""

from moorage.cli.command import Call, Command, Operand
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.options import JOB
from moorage.errors import BadInput

from .options import PARAM


def _add(call: Call) -> None:
    name = _only_name(call)
    fields = call.given | ({"name": name} if name else {})
    uuid = perform(call, **fields)
    call.terminal.print(f"Added disk {name} ({uuid})" if name else f"Added disk {uuid}")


def _only_name(call: Call) -> str | None:
    """Return the new disk's name: the operand, or ``--name``."""
    given = {*call.words, *filter(None, [call.option("name")])}
    if len(given) > 1:
        raise BadInput("a disk has one name", hint="drop either --name or the operand")
    return next(iter(given), None)


def _adopt(call: Call) -> None:
    fields = call.fields
    uuid = perform(call, **fields)
    name = fields.get("name", uuid)
    call.terminal.print(f"Adopted volume {fields['volume']} as disk {name}")


ADD = Command(
    "add",
    _add,
    (Operand("NAME", 0),),
    (
        *fills(
            "-t/--disk-template -s/--size -p/--provider --pool --access",
            "--epoch --name -n/--node -g/--node-group=group --mode --spindles",
            "--force-params --tags --ignore-capacity",
        ),
        PARAM,
        fill("--adopt", metavar="NAME"),
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
    operation="OP_DISK_ADD",
)
ADOPT = Command(
    "adopt",
    _adopt,
    (Operand("VOLUME", field="volume"),),
    (
        *fills(
            "--name -t/--disk-template -p/--provider --pool -s/--size --epoch",
            "--mode -n/--node -g/--node-group=group",
        ),
        PARAM,
        *JOB,
    ),
    examples={
        "gnt-disk adopt -t sharedfile --name old /srv/shared/old.img": (
            "a file that somebody put there"
        )
    },
    operation="OP_DISK_ADOPT",
)
COMMANDS = (ADD, ADOPT)
