# SPDX-License-Identifier: BSD-2-Clause
"""What a disk template is: declared facts, and verbs that yield commands.

A template never runs anything. A verb is a generator: it yields a :class:`Command`,
receives an :class:`Output`, and returns what changed. The node agent runs the commands,
the simulator answers them, a test reads them from a file.
Verbs are idempotent: twice is the same as once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from moorage.disk_templates import Parameter
from moorage.errors import BadInput, NotSupported
from moorage.model import Disk, Need, Pair, Unit, Volume, id_parts
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import Id, Outcome, Params, Settings, Site, Steps, Where
from moorage.storage.validation import check_name, flag, looks_ours, number, text
from moorage.units import Mib

_VALUES: Mapping[type, Callable[[str, object], object]] = {bool: flag, str: text}
"""How the value of a parameter that is no number is read, by its kind."""


def _value(of: Parameter, given: object) -> object:
    if of.kind is int:
        return number(of.name, given, of.bounds)
    return _VALUES[of.kind](of.name, given)


class Template(ABC):
    """A disk template, bound to the node where its commands run.

    The class declares; `name` and `capabilities` are all that the core reads.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    def __init__(self, site: Site) -> None:
        self.site = site

    @classmethod
    @abstractmethod
    def logical_id(cls, request: "VolumeRequest") -> tuple[Any, ...]:
        """Return the identity of a new volume, in Ganeti's terms."""

    @classmethod
    def check_made(cls, disk: Disk) -> None:
        """Raise `BadInput` unless a disk is one that this template can have made."""
        found, parts = disk.logical_id, id_parts(disk)
        if len(found) != len(parts) or not all(map(isinstance, found, parts)):
            kinds = ", ".join(one.__name__ for one in parts)
            raise BadInput(
                f"disk {disk.label} is no disk of template '{cls.name}': where its "
                f"data is must be said in {len(parts)} parts ({kinds})",
                disk=disk.uuid,
            )

    @classmethod
    def parameters(cls, given: Params) -> dict[str, Any]:
        """Return the parameters that the disk keeps.

        Raises
        ------
        BadInput
            If the template has no such parameter.
        """
        cls._check_words(given)
        known = {one.name: one for one in cls.capabilities.facts.parameters}
        unknown = sorted(given.keys() - known)
        if unknown:
            raise BadInput(
                f"disk template '{cls.name}' has no parameter '{unknown[0]}'",
                hint=cls._parameters_told(),
                parameters=unknown,
            )
        return {name: _value(known[name], given[name]) for name in given}

    @classmethod
    def _parameters_told(cls) -> str:
        """Say which parameters there are, and what they mean."""
        known = cls.capabilities.facts.parameters
        told = (f"{one.name} ({one.meaning.rstrip('.')})" for one in known)
        return f"it has: {'; '.join(told)}" if known else "it has none"

    @classmethod
    def defaults(cls, given: Params) -> dict[str, Any]:
        """Return the parameters that a cluster may preset for all disks to come.

        Raises
        ------
        BadInput
            If there is no such parameter, or it is each disk's own.
        """
        return cls.parameters(given)

    @classmethod
    def snapshot_id(cls, disk: Disk, name: str) -> tuple[Any, ...]:
        """Return the identity of the snapshot `name`, to drive it as a disk."""
        return (*disk.logical_id[:-1], check_name("snapshot", name))

    @classmethod
    def adoptable(cls, volume: str) -> str:
        """Return the name under which a volume to adopt is stored.

        Raises
        ------
        BadInput
            If no volume of this template can have such a name.
        """
        return volume

    @classmethod
    def adopted_at(cls, volume: str, settings: Settings, params: Params) -> str:
        """Return the path of the device of a volume to adopt."""
        del settings, params
        return volume

    @classmethod
    def unit_key(cls, settings: Settings, params: Params, logical_id: Id = ()) -> str:
        """Return the key of the storage unit that a disk is in.

        Parameters
        ----------
        params
            The parameters of the disk; ``adopt`` where it is a device.
        logical_id
            Its identity; empty before it has one.
        """
        del settings
        return str(logical_id[-1] if logical_id else params.get("adopt") or "")

    @classmethod
    def unit_keys(cls, settings: Settings, params: Params) -> tuple[str, ...]:
        """Return the keys of all units that a new disk needs, on each of its nodes.

        Raises
        ------
        BadInput
            If nobody names one that there must be.
        """
        return (cls.unit_key(settings, params),)

    @classmethod
    def at_rest(cls, disk: Disk) -> "Where | None":
        """Return where the data is before it is attached; None if attach tells."""
        del disk
        return None

    @classmethod
    def is_ours(cls, volume: Volume) -> bool:
        """Whether a volume is named as those are that a cluster like this one makes.

        What is named otherwise is somebody else's. What is, may be another cluster's.
        """
        return looks_ours(str(volume.logical_id[-1]), cls.name)

    @classmethod
    def _check_words(cls, given: Params) -> None:
        """Refuse the words that only templates with a certain capability know."""
        if "provider" in given and not cls.capabilities.provider:
            raise BadInput(
                "The 'provider' option is only valid for the ext disk template, "
                f"not {cls.name}"
            )
        if "adopt" in given and Can.ADOPT not in cls.capabilities.can:
            raise BadInput(
                f"disk template '{cls.name}' cannot adopt a volume that exists"
            )

    def create(self, disk: Disk) -> Steps[Outcome]:
        """Make the volume. One that is there already is left alone."""
        raise self.lacks("create a volume", disk)

    def remove(self, disk: Disk) -> Steps[Outcome]:
        """Destroy the volume, if it is there."""
        raise self.lacks("remove a volume", disk)

    @abstractmethod
    def attach(self, disk: Disk) -> Steps[Where]:
        """Make the volume usable on this node, and say where it is."""

    @abstractmethod
    def detach(self, disk: Disk) -> Steps[Outcome]:
        """Take back :meth:`attach`; the data stays."""

    def open(self, disk: Disk, *, exclusive: bool) -> Steps[Outcome]:
        """Tell the storage that this node may write, alone or with others."""
        del disk, exclusive
        return nothing()

    def close(self, disk: Disk) -> Steps[Outcome]:
        """Tell the storage that this node stops writing."""
        del disk
        return nothing()

    def grow(self, disk: Disk, to: Mib) -> Steps[Outcome]:
        """Enlarge the volume to `to` MiB; a larger one is left alone."""
        raise self.lacks(f"grow to {to} MiB", disk)

    def snapshot(self, disk: Disk, name: str, size: Mib) -> Steps[Outcome]:
        """Make a copy-in-time called `name`, `size` MiB large."""
        raise self.lacks(f"take snapshot {name} of {size} MiB", disk)

    def setinfo(self, disk: Disk, text: str) -> Steps[Outcome]:
        """Keep `text` beside the volume, where the storage has a place for it."""
        del disk, text
        return nothing()

    def verify(self, disk: Disk) -> Steps[Outcome]:
        """Look at the disk's parameters; nothing is made or changed.

        Raises
        ------
        BadInput
            If the storage does not take them.
        """
        del disk
        return nothing()

    def measure(self, disk: Disk) -> Steps[Mib]:
        """Ask the storage how large the volume is, rounded down to MiB."""
        raise self.lacks("tell a volume's size", disk)

    def examine(self) -> Steps[tuple[Need, ...]]:
        """Ask whether this node has what disks need, besides programs and modules.

        It looks where `site`'s settings and parameters say, as :meth:`room` does.
        """
        return ()
        yield  # what makes this a generator

    def room(self) -> Steps[tuple[Unit, ...]]:
        """Ask which storage unit this node has by `site`'s settings and parameters.

        Room that the storage cannot tell is None; a template that can tell it
        declares `Can.ROOM`.
        """
        return ()
        yield  # what makes this a generator

    def volumes(self, params: Params) -> Steps[tuple[Volume, ...]]:
        """Ask which volumes a storage has here, whoever made them.

        A template that can tell declares `Can.LIST`. What it returns is complete, or
        it fails: what is not in it is taken for missing.

        Parameters
        ----------
        params
            Those of a disk that would be in that storage: they say which one is meant,
            where the template has several (a volume group, a pool, a provider).
        """
        del params
        raise NotSupported(
            f"disk template '{self.name}' does not tell which volumes there are"
        )

    def lacks(self, what: str, disk: Disk) -> NotSupported:
        """Return the error of a verb that this template does not have."""
        return NotSupported(
            f"disk template '{self.name}' cannot {what} (disk {disk.label})",
            disk=disk.uuid,
            template=self.name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRequest:
    """What a template may use to name a new volume.

    Attributes
    ----------
    unique
        A fresh uuid for the volume's name; the disk's own uuid is another one.
    index
        Slot at creation; 0 for a disk that belongs to nobody.
    instance
        Name of the instance it is made for; empty for nobody.
    folder
        For image files: where below the cluster's directory; empty for right there.
    settings
        The fields of the cluster that the template needs, by their names.
    params
        All the parameters that hold for it, before :meth:`Template.parameters`: the
        cluster's, the group's, its storage pool's, and its own.
    volume
        What it is to be called, where its storage pool has a pattern; else empty.
    pair
        Who keeps the copies of a mirrored disk; None for any other.
    """

    unique: str
    index: int = 0
    instance: str = ""
    folder: str = ""
    settings: Settings = field(default_factory=dict)
    params: Params = field(default_factory=dict)
    volume: str = ""
    pair: Pair | None = None

    def name(self, template: str) -> str:
        """Return the name of the volume, without a directory."""
        return self.volume or f"{self.unique}.{template}.disk{self.index}"


def nothing() -> Steps[Outcome]:
    """Return steps that do nothing."""
    return Outcome.UNCHANGED
    yield  # what makes this a generator
