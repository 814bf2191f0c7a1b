# SPDX-License-Identifier: BSD-2-Clause
"""Bring a disk's data to other storage: the disk itself, or a copy."""

from moorage.cli.command import Command, Option
from moorage.cli.operation import Needs, performs
from moorage.cli.options import FORCE_PARAMS, IGNORE_CAPACITY, JOB, OVERRIDES, RATE

from .options import ACCESS, DISK, PARAM, PROVIDER

_STORAGE = Needs(
    ("disk_template", "pool", "provider", "access", "adopt", "params"),
    "which storage is the disk to have?",
    "add -t sharedfile, -t ext -p ...",
)
_POOL = Needs(("pool",), "to which storage pool?", "add --pool POOL")
_NAME = Needs(("new_name",), "the new disk needs a name", "add --name NAME")
_TARGET = (
    Option(
        ("-t", "--disk-template"),
        "how the data is to be stored; without it, as now",
        "NAME",
    ),
    PROVIDER,
    Option(("--pool",), "the storage pool that it is to be in", "POOL"),
    PARAM,
    ACCESS,
    FORCE_PARAMS,
)

_WORK = (
    Option(("-n", "--node"), "the node that does the work", "NODE"),
    RATE,
)
_HOW = (*_WORK, *OVERRIDES, *JOB)

COMMANDS = (
    Command(
        "convert",
        performs("OP_DISK_CONVERT", "Converted disk {disk}", needs=_STORAGE),
        (DISK,),
        (
            *_TARGET,
            Option(("--adopt",), "what to overwrite, instead of a new volume", "NAME"),
            *_HOW,
        ),
        examples={
            "gnt-disk convert -t ext -p san data1": "to the provider san",
            "gnt-disk convert -t sharedfile --rate 50M data1": (
                "to an image file, at most 50 MiB a second"
            ),
        },
    ),
    Command(
        "move",
        performs(
            "OP_DISK_CONVERT", "Moved disk {disk} to storage pool {pool}", needs=_POOL
        ),
        (DISK,),
        (Option(("--pool",), "the storage pool", "POOL"), *_HOW),
        examples={"gnt-disk move --pool fast data1": "to the pool fast"},
        surplus="the storage pool: gnt-disk move --pool POOL DISK",
    ),
    Command(
        "clone",
        performs(
            "OP_DISK_CLONE",
            "Cloned disk {disk}: disk {new_name} ({result})",
            needs=_NAME,
        ),
        (DISK,),
        (
            Option(("--name",), "name of the new disk", "NAME", dest="new_name"),
            *_TARGET,
            *_WORK,
            IGNORE_CAPACITY,
            *JOB,
        ),
        examples={
            "gnt-disk clone data1 --name data2": "where it is, by a snapshot if any",
            "gnt-disk clone data1 --name data2 --pool slow": "to another storage pool",
        },
        surplus="the new disk's name: gnt-disk clone DISK --name NAME",
    ),
)
