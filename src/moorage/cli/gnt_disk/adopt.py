# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk adopt``: a volume that is there becomes a disk."""

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.options import JOB
from moorage.errors import BadInput
from moorage.units import parse_size

from .options import MODE, PARAM


def _adopt(call: Call) -> None:
    fields = call.fields
    if not fields.keys() & {"disk_template", "pool"}:
        raise BadInput(
            "say where the volume is: a template or a storage pool",
            hint="add -t ext -p PROVIDER, -t sharedfile ... or --pool NAME",
        )
    uuid = perform(call, "OP_DISK_ADOPT", **fields)
    name = fields.get("name", uuid)
    call.terminal.print(f"Adopted volume {fields['volume']} as disk {name}")


COMMAND = Command(
    "adopt",
    _adopt,
    "Make a disk, with its data, of a volume that no disk is in",
    (Operand("VOLUME", field="volume"),),
    (
        Option(("--name",), "name of the disk", "NAME"),
        Option(("-t", "--disk-template"), "the disk template", "TEMPLATE"),
        Option(("-p", "--provider"), "the ExtStorage provider", "NAME"),
        Option(("--pool",), "the storage pool", "NAME"),
        Option(
            ("-s", "--size"), "where the storage tells none: 10G", "SIZE", parse_size
        ),
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
