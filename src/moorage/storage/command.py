# SPDX-License-Identifier: BSD-2-Clause
"""What a template's verbs yield, what they receive, and what they return."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec import field as struct_field

from moorage.errors import NotSupported
from moorage.hypervisors import USUAL
from moorage.model import Provider
from moorage.model.pair import HIDDEN

Settings = Mapping[str, str]
"""The fields of the cluster that a template needs, by their names."""
Params = Mapping[str, Any]
"""The parameters of a disk, by their names."""
Id = Sequence[Any]
"""Where a volume is, in its template's terms; empty before it is anywhere."""


class Opened(StrEnum):
    """How a node opens what a command names, before the program gets it.

    It does so beneath a directory that the node allows, and over no symbolic link.
    """

    FILE = "file"
    """A regular file that is there."""
    VOLUME = "volume"
    """The same, where the node allows it; elsewhere what a provider names: a regular
    file or block device that is no link, or a link to a block device."""
    MADE = "made"
    """A regular file; an empty one is made where there is none."""
    DIRECTORY = "directory"
    PLACE = "place"
    """A directory; where there is none, the program gets an empty word for it."""
    ENTRY = "entry"
    """A name in a directory that is there, to make, rename or remove."""


@dataclass(frozen=True, slots=True)
class Content:
    """An image or a device whose content a program works with, and not with the file.

    A QEMU without any right opens it, as guests' QEMU do, and hands the content on: so
    whoever wrote the image has nobody to mislead.

    Attributes
    ----------
    form
        Its format, which is never guessed: ``raw`` or ``qcow2``.
    writes
        Whether it is written to.
    block
        Whether it is a block device, or else an image file.
    made
        Bytes of a new disk: what the file had is gone. 0 for one that is there.
    packed
        Whether what is written is compressed.
    """

    form: str
    writes: bool = False
    block: bool = False
    made: int = 0
    packed: bool = False


@dataclass(frozen=True, slots=True)
class Confined:
    """What a program gets by such a QEMU.

    Attributes
    ----------
    contents
        By the words of its command.
    users
        Ranges of user-ids, one of which QEMU runs as.
    alone
        Whether the program needs nothing else: it runs as that user then, too.
    """

    contents: Mapping[str, Content]
    users: tuple[tuple[int, int], ...]
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """How a program tells how far it is.

    Attributes
    ----------
    note
        What it does, in words for whoever waits.
    total, unit
        What 100 percent stand for; ``MiB`` is shown as a size.
    variable
        The variable that names a file to which it may write lines, each the latest
        word: ``DONE TOTAL [UNIT]``, or ``NN%``. Empty for a program that prints
        percentages, as ``qemu-img -p`` does.
    """

    note: str = ""
    total: int = 100
    unit: str = "%"
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run on a node.

    Attributes
    ----------
    argv
        The program and its arguments.
    env
        All variables the program sees, besides PATH and LC_ALL.
    cwd
        Where it runs; empty for the root directory.
    log
        File name (without directory or time) that takes its output; empty when the
        output is read instead.
    check
        Whether a non-zero exit is a failure; else the template looks at it.
    failure
        How Ganeti words the failure: the sentence before the output's last lines.
    images
        Which words of `argv` and values in `env` are paths of image files, and how
        the node opens them. The program gets descriptors, so nobody who may write to
        the directory can put another file in the place of one that was looked at.
        Without the file, the command counts as one that exits with 1.
    reads
        Whether it changes nothing: then nobody has to wait for its end, or to end it,
        when the agent that started it has died.
    progress
        How it tells how far it is; None if it does not.
    limit
        Seconds that it may last; None for the usual limit of the node.
    whole
        Whether all that it prints is wanted; else the first MiB of it is.
    stdin, stdout
        Image files, of those in `images`, that it reads and writes by its standard
        input and output; empty for none.
    confined
        What it gets by a QEMU that has no rights; None for nothing.
    pins
        Descriptors of image files that the node has open already, by their words: what
        was looked at is what the program gets.
    secrets
        Parts of its words that nobody is to read in an error: a job keeps those, and
        shows them to whoever asks.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    log: str = ""
    check: bool = True
    failure: str = ""
    images: Mapping[str, Opened] = field(default_factory=dict)
    reads: bool = False
    progress: Progress | None = None
    limit: float | None = None
    whole: bool = False
    stdin: str = ""
    stdout: str = ""
    confined: Confined | None = None
    pins: Mapping[str, int] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What a failure calls it: Ganeti's words, or its own that may be read."""
        return self.failure or " ".join(self.words)

    @property
    def words(self) -> list[str]:
        """The program and its arguments, as they may be read."""
        return [self.readable(word) for word in self.argv]

    def readable(self, text: str) -> str:
        """Return a text of the program's, or about it, without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


@dataclass(frozen=True, slots=True)
class Output:
    """What a program answered."""

    stdout: str = ""
    code: int = 0


class Outcome(Enum):
    """What a verb did: idempotency as a return value."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"


class Where(Struct, frozen=True):
    """How a hypervisor reaches a disk that was attached on a node.

    Attributes
    ----------
    path
        Block device or image file; None for a disk that has none (userspace only).
    block
        Whether `path` is a block device, or else a regular file.
    uris
        A URI by the hypervisor's name in lower case.
    """

    path: str | None = None
    block: bool = False
    uris: dict[str, str] = struct_field(default_factory=dict)

    def for_hypervisor(self, name: str, *, userspace: bool) -> str:
        """Return the URI or path to use; a URI is preferred if userspace is wanted.

        Raises
        ------
        NotSupported
            If the disk offers neither to this hypervisor.
        """
        uri = self.uris.get(name.lower())
        if uri and (userspace or not self.path):
            return uri
        if self.path and not userspace:
            return self.path
        raise NotSupported(
            f"the disk offers no userspace access to the {name} hypervisor"
            if userspace
            else f"the disk offers neither a device nor a URI for {name}",
            offered=sorted(self.uris),
        )


class Holder(Struct, frozen=True):
    """A node that keeps a copy of a mirrored disk, as the others must know it.

    Attributes
    ----------
    address
        Where it listens for the others.
    offline
        Whether somebody said that it is off: nobody waits for it.
    """

    name: str
    address: str
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a template must know of the node that its commands run on.

    Attributes
    ----------
    settings
        The fields of the cluster that the template needs, by their names.
    params
        To measure a storage unit: what its disks have, as a volume group's name.
    pool
        Name of the storage pool that the disk is in; empty for none.
    holders
        Of a mirrored disk, the nodes that keep it, in the order of its identity.
    """

    node: str
    hypervisor: str = USUAL
    settings: Settings = field(default_factory=dict)
    params: Params = field(default_factory=dict)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    pool: str = ""
    holders: Sequence[Holder] = ()


R = TypeVar("R")
Steps = Generator[Command, Output, R]
"""Yield commands, receive outputs, return what came of it."""
