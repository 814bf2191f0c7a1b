# SPDX-License-Identifier: BSD-2-Clause
"""Bring a disk's data to other storage: the disk itself, or a copy."""

from moorage.cli.command import Command
from moorage.cli.fields import fill, fills
from moorage.cli.operation import Needs, Performs
from moorage.cli.options import JOB

from .options import DISK, PARAM

_STORAGE = Needs(
    ("disk_template", "pool", "provider", "access", "adopt", "params"),
    "which storage is the disk to have?",
    "add -t sharedfile, -t ext -p ...",
)
_POOL = Needs(("pool",), "to which storage pool?", "add --pool POOL")
_NAME = Needs(("new_name",), "the new disk needs a name", "add --name NAME")
_TARGET = (
    PARAM,
    *fills("-t/--disk-template -p/--provider --pool --access --force-params"),
)
_WORK = fills("-n/--node --rate --ignore-capacity")
_HOW = (*_WORK, *fills("--ignore-ipolicy"), *JOB)

COMMANDS = (
    Command(
        "convert",
        Performs("Converted disk {disk}", needs=_STORAGE),
        (DISK,),
        (*_TARGET, fill("--adopt", metavar="NAME"), *_HOW),
        examples={
            "gnt-disk convert -t ext -p san data1": "to the provider san",
            "gnt-disk convert -t sharedfile --rate 50M data1": (
                "to an image file, at most 50 MiB a second"
            ),
        },
        operation="OP_DISK_CONVERT",
    ),
    Command(
        "move",
        Performs("Moved disk {disk} to storage pool {pool}", needs=_POOL),
        (DISK,),
        (*fills("--pool"), *_HOW),
        examples={"gnt-disk move --pool fast data1": "to the pool fast"},
        surplus="the storage pool: gnt-disk move --pool POOL DISK",
        operation="OP_DISK_CONVERT",
    ),
    Command(
        "clone",
        Performs("Cloned disk {disk}: disk {new_name} ({result})", needs=_NAME),
        (DISK,),
        (*fills("--name=new_name"), *_TARGET, *_WORK, *JOB),
        examples={
            "gnt-disk clone data1 --name data2": "where it is, by a snapshot if any",
            "gnt-disk clone data1 --name data2 --pool slow": "to another storage pool",
        },
        surplus="the new disk's name: gnt-disk clone DISK --name NAME",
        operation="OP_DISK_CLONE",
    ),
)
