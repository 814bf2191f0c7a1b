# SPDX-License-Identifier: BSD-2-Clause
"""What an export is: the dumps of some disks, and what they were the disks of.

An export is a directory below a node's export directory. Its name there is the
instance's, or ``disk+LABEL`` for a disk that was exported alone.
"""

import re
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from moorage.errors import BadInput
from moorage.hypervisors import KVM
from moorage.units import Mib

from .objects import Disk, Nic

VERSION = 1
"""Of the manifest."""
_ALONE = "disk+"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}", re.ASCII)
HALF_MADE, REPLACED = ".new", ".old"
"""Ends of directories that are no exports: one being made, one being replaced."""


class Form(StrEnum):
    """What is in a dump."""

    QCOW2 = "qcow2"
    RAW = "raw"
    """The disk's bytes, as they are."""
    OS = "os"
    """What the export script of the OS printed; only its import script can read it."""


class Moment(StrEnum):
    """When the data are from."""

    DOWN = "down"
    """The guest was down: file systems are whole."""
    RUNNING = "running"
    """One moment of all disks, while the guest ran, as after a loss of power."""
    UNKNOWN = ""


class Dump(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One disk of an export.

    Attributes
    ----------
    file
        Name of the dump in the export's directory.
    size
        Of the disk.
    bytes
        Length of the file.
    sha256
        Of the file, in hex; empty where nobody knows it.
    dev_type, params, name, mode
        Of the disk that it was.
    """

    file: str
    form: Form
    size: Mib
    bytes: int = 0
    sha256: str = ""
    dev_type: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    name: str | None = None
    mode: str = "rw"


class Exported(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The instance that was exported; parameters are its own, without defaults."""

    name: str
    os: str = ""
    hypervisor: str = KVM
    hvparams: dict[str, Any] = field(default_factory=dict)
    beparams: dict[str, Any] = field(default_factory=dict)
    osparams: dict[str, Any] = field(default_factory=dict)
    nics: tuple[Nic, ...] = ()
    tags: tuple[str, ...] = ()


class Export(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An export: the content of its manifest.

    Attributes
    ----------
    name
        Of its directory.
    uuid
        Of this very export; empty for one that Ganeti made.
    made
        When it was begun, in seconds.
    cluster, node
        Names of where it was made.
    instance
        None for a disk alone.
    problem
        Why it is no export that can be used; empty for a good one.
    """

    name: str
    version: int = VERSION
    uuid: str = ""
    made: float = 0.0
    cluster: str = ""
    node: str = ""
    moment: Moment = Moment.UNKNOWN
    instance: Exported | None = None
    dumps: tuple[Dump, ...] = ()
    problem: str = ""

    @property
    def size(self) -> int:
        """Bytes of all dumps."""
        return sum(dump.bytes for dump in self.dumps)


def name_of_disk(disk: Disk) -> str:
    """Return what the export of a disk alone is called."""
    return check_name(f"{_ALONE}{disk.label}")


def check_name(name: str) -> str:
    """Return the name of an export, or of a file in it.

    Raises
    ------
    BadInput
        If it cannot be one: it would lead elsewhere, or stand for a half-made one.
    """
    if not _PLAIN.fullmatch(name) or name.endswith((HALF_MADE, REPLACED)):
        raise BadInput(f"'{name[:80]}' is not the name of an export")
    return name
