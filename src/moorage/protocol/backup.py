# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on exports, and those that take the data of disks out and in.

An export grows in a directory whose name ends with ``.new``, and gets its name when it
is whole. Steps on one export wait for each other, by its name.
"""

from typing import Any, Generic, TypeVar

from msgspec import Struct

from moorage.model.export import Dump, Export
from moorage.model.uidpool import STANDARD, UidPool
from moorage.storage import Outcome

from .guest import Door, WithSystem
from .verb import A_WEEK, OnDisk, OnGuest, Reading, Verb, WithDisks

R_co = TypeVar("R_co", covariant=True)


class Writing(Struct, frozen=True, kw_only=True):
    """How dumps are written.

    Attributes
    ----------
    compress
        Whether the dump is compressed; one in qcow2 alone can be.
    rate
        MiB a second at most; 0 for as fast as it goes.
    """

    compress: bool = False
    rate: int = 0


class ListExports(Reading[list[Export]], frozen=True, tag="export.list"):
    """Return every export of this node, those without a manifest by name alone."""

    limit = 60.0
    long = True


class OnExport(Verb[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on one export of this node.

    Attributes
    ----------
    name
        Of its directory.
    """

    name: str

    def touched(self) -> frozenset[str]:
        """Return the export, and the disks."""
        return Verb.touched(self) | {key_of(self.name)}


def key_of(name: str) -> str:
    """Return what steps on an export take turns by."""
    return f"export {name}"


class BeginExport(OnExport[None], frozen=True, tag="export.begin"):
    """Make an empty directory for an export that is to grow."""


class DropExport(OnExport[Outcome], frozen=True, tag="export.drop"):
    """Remove what is no export: what grew of one, and what one replaced."""


class SealExport(OnExport[Export], frozen=True, kw_only=True, tag="export.seal"):
    """Write the manifest, with length and checksum of each dump; then nothing is lost.

    Attributes
    ----------
    export
        What the manifest says, but for lengths and checksums.
    filled
        The instance's parameters with all defaults, by section of Ganeti's
        ``config.ini``; empty where Ganeti is not to read it.
    travels
        Whether another node gets it: then it stays one that grows here, and goes with
        an agent that dies.
    """

    limit = A_WEEK
    export: Export
    filled: dict[str, dict[str, Any]] = {}
    travels: bool = False


class PublishExport(OnExport[Outcome], frozen=True, tag="export.publish"):
    """Give an export its name, in the place of an older one."""


class RemoveExport(OnExport[Outcome], frozen=True, tag="export.remove"):
    """Let an export be none any more; ``export.drop`` gives its room back."""


class VerifyExport(OnExport[list[str]], frozen=True, kw_only=True, tag="export.verify"):
    """Return a sentence for each dump that is not what the manifest says.

    Attributes
    ----------
    uuid
        Of the export that is meant; empty for whichever is there.
    """

    limit = A_WEEK
    uuid: str = ""


class OfferExport(OnExport[Door], frozen=True, kw_only=True, tag="export.offer"):
    """Wait for the one node that is to have an export, and send it the dumps.

    Attributes
    ----------
    offer
        What it is withdrawn by; nobody else's is the same.
    export
        What is offered: one of another uuid, or with other dumps, is another one.
    growing
        Whether it is sealed, and has not got its name.
    address
        Of this node, where the other one comes.
    port
        The first that is tried.
    rate
        MiB a second at most; 0 for as fast as it goes.
    """

    offer: str
    export: Export
    growing: bool = False
    address: str
    port: int
    rate: int = 0


class WithdrawExport(OnExport[None], frozen=True, kw_only=True, tag="export.withdraw"):
    """Wait for nobody any more, and hang up on who is being sent an export.

    Attributes
    ----------
    offer
        That of ``export.offer``.
    """

    offer: str


class FetchExport(OnExport[None], frozen=True, kw_only=True, tag="export.fetch"):
    """Fetch the dumps of another node's export into one that grows here.

    Attributes
    ----------
    export
        What its manifest says: dumps that differ are refused.
    address
        Of the node where it is offered.
    door
        The answer of that node to ``export.offer``.
    files
        What its dumps are called, where that node tells their lengths: it may tell of
        others. Empty where the manifest was read before.
    """

    limit = A_WEEK
    breakable = True
    export: Export
    address: str
    door: Door | None = None
    files: tuple[str, ...] = ()


class OfDump(OnDisk[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on a disk that is attached here, and the dump of it in an export.

    Attributes
    ----------
    name
        Of the export.
    dump
        What the copy is to be, or as the manifest has it.
    uid_pool
        Users, one of which is to read or write the dump.
    """

    limit = A_WEEK
    breakable = True
    name: str
    dump: Dump
    writing: Writing = Writing()
    uid_pool: UidPool = STANDARD

    def touched(self) -> frozenset[str]:
        """Return the disk and the export."""
        return OnDisk.touched(self) | {key_of(self.name)}


class DumpDisk(OfDump[None], frozen=True, kw_only=True, tag="export.dump"):
    """Copy a disk that is attached here, and that nobody writes to, into an export."""


class DumpGuest(WithDisks[None], frozen=True, kw_only=True, tag="export.dump-guest"):
    """Copy the disks of a running guest, all as they are at one moment.

    Attributes
    ----------
    export
        Its name.
    dumps
        What the copies are to be, in the order of the disks.
    uid_pool
        Users, one of which is to make the dumps.
    """

    limit = A_WEEK
    breakable = True
    export: str
    dumps: tuple[Dump, ...]
    writing: Writing = Writing()
    uid_pool: UidPool = STANDARD

    def touched(self) -> frozenset[str]:
        """Return the guest, the disks and the export."""
        return WithDisks.touched(self) | {key_of(self.export)}


class EndDump(OnGuest[Outcome], frozen=True, kw_only=True, tag="export.dump-end"):
    """End the copying of a guest's disks, if it goes on."""


class OfOneDisk(WithSystem[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A script of the OS, and the dump of one disk.

    Attributes
    ----------
    export
        Its name.
    index
        Which of the disks.
    dump
        What it is to be, or as the manifest has it.
    """

    limit = A_WEEK
    breakable = True
    export: str
    index: int
    dump: Dump

    def touched(self) -> frozenset[str]:
        """Return the guest, the disks and the export."""
        return WithSystem.touched(self) | {key_of(self.export)}


class RunExportScript(OfOneDisk[None], frozen=True, kw_only=True, tag="export.dump-os"):
    """Let the export script of the OS dump one disk."""


class LoadDisk(OfDump[None], frozen=True, kw_only=True, tag="export.load"):
    """Write a dump to a disk that is attached here.

    Attributes
    ----------
    fetched
        Whether the dump came with ``export.fetch``, into what grows under the name.
    """

    fetched: bool = False


class RunImportScript(OfOneDisk[None], frozen=True, kw_only=True, tag="export.load-os"):
    """Let the import script of the OS write one disk from what the other one said.

    Attributes
    ----------
    fetched
        As for ``export.load``.
    """

    fetched: bool = False
