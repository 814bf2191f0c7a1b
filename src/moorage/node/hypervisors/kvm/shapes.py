# SPDX-License-Identifier: BSD-2-Clause
"""What QEMU answers: the shape, and how much of it.

A guest may have taken its QEMU over: what does not fit is not believed.
"""

from typing import Annotated

from msgspec import Meta, Struct

_Word = Annotated[str, Meta(pattern=r"\A[a-z0-9-]{0,40}\Z")]
_Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
_Name = Annotated[str, Meta(max_length=255)]
Devfn = Annotated[int, Meta(ge=0, le=255)]
"""A device's slot on its bus, and in three bits its function there."""
Path = Annotated[str, Meta(max_length=1000)]
"""A place in QEMU's tree of objects."""


class Status(Struct, frozen=True):
    """What a guest does."""

    status: _Word


class Child(Struct, frozen=True):
    """An object in QEMU's tree."""

    name: _Name


Children = Annotated[list[Child], Meta(max_length=256)]
"""Those of one place: 16 drives, 8 cards, their ports, and what else there is."""


class CharacterLine(Struct, frozen=True):
    """A line that characters go by: a console, a monitor, a channel."""

    label: _Name
    filename: Annotated[str, Meta(max_length=4096)]


Lines = Annotated[list[CharacterLine], Meta(max_length=64)]


class Drive(Struct, frozen=True):
    """A drive as its device has it: where that is, or the part of it that reads."""

    qdev: Path = ""


Drives = Annotated[list[Drive], Meta(max_length=256)]


class Opened(Struct, frozen=True):
    """A descriptor that QEMU was given."""

    opaque: str = ""


class Given(Struct, frozen=True):
    """What became of a descriptor that QEMU was given."""

    fd: Annotated[int, Meta(ge=0, lt=1 << 31)]


class FdSet(Struct, frozen=True, rename="kebab"):
    """Descriptors of one file."""

    fdset_id: Annotated[int, Meta(ge=0, lt=1 << 31)]
    fds: list[Opened]


class Image(Struct, frozen=True, rename="kebab"):
    """The data of a block node."""

    virtual_size: _Count


class BlockNode(Struct, frozen=True, rename="kebab"):
    """A block node."""

    image: Image
    node_name: str


class Identity(Struct, frozen=True, rename={"uuid": "UUID"}):
    """Which guest QEMU says that it is."""

    uuid: _Name


class Driver(Struct, frozen=True):
    """What reaches the data of a block node, and where they are."""

    drv: _Name
    file: Annotated[str, Meta(max_length=4096)] = ""


Drivers = Annotated[list[Driver], Meta(max_length=256)]


class Ram(Struct, frozen=True, rename="kebab"):
    """How much of a guest's memory has been sent."""

    total: _Count = 0
    remaining: _Count = 0
    transferred: _Count = 0
    dirty_sync_count: _Count = 1


class Processor(Struct, frozen=True, rename="kebab"):
    """A virtual processor, and the thread that runs it."""

    cpu_index: Annotated[int, Meta(ge=0, lt=1 << 16)]
    thread_id: Annotated[int, Meta(ge=1, lt=1 << 31)]


Processors = Annotated[list[Processor], Meta(max_length=1024)]


class Kvm(Struct, frozen=True):
    """Whether the guest's instructions are carried out by the processor itself."""

    enabled: bool


class Balloon(Struct, frozen=True):
    """How much memory a guest has, in bytes."""

    actual: _Count


class Migration(Struct, frozen=True, rename="kebab"):
    """How far a migration is."""

    status: _Word = ""
    total_time: _Count = 0
    downtime: _Count = 0
    ram: Ram | None = None
    error_desc: str = ""


class Job(Struct, frozen=True, rename="kebab"):
    """A job on block nodes."""

    id: _Name
    status: _Word
    current_progress: _Count = 0
    total_progress: _Count = 0
    error: str = ""


Jobs = Annotated[list[Job], Meta(max_length=256)]


class BlockJob(Struct, frozen=True, rename="kebab"):
    """What a job on block nodes met: ``ok``, ``failed`` or ``nospace``."""

    device: _Name
    io_status: _Word


BlockJobs = Annotated[list[BlockJob], Meta(max_length=256)]


NO_RAM = Ram()
"""Before anything was sent."""
