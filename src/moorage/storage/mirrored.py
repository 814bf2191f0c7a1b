# SPDX-License-Identifier: BSD-2-Clause
"""A disk template of which the cluster keeps two copies, on two nodes."""

from abc import abstractmethod

from moorage.model import Disk, MirrorState
from moorage.storage.base import Template, VolumeRequest
from moorage.storage.command import Outcome, Steps, Where
from moorage.units import Mib


class Mirrored(Template):
    """A template whose disks are a pair: one node writes, and the other one follows.

    Each copy is made of volumes of another template, which its facts name
    (:attr:`~moorage.disk_templates.TemplateFacts.volume`).
    """

    @classmethod
    @abstractmethod
    def children(cls, request: VolumeRequest, size: Mib) -> tuple[Disk, ...]:
        """Return the volumes that each copy of a new disk of `size` MiB is made of."""

    @abstractmethod
    def open_alone(self, disk: Disk) -> Steps[Outcome]:
        """Open for this node alone, although another copy may not follow."""

    @abstractmethod
    def found(self, disk: Disk) -> Steps[Where]:
        """Return the device that others set up here; change nothing of it.

        Raise `Failed` unless it is as :meth:`attach` would leave it.
        """

    @abstractmethod
    def seize(self, disk: Disk) -> Steps[Outcome]:
        """Open for this node alone, although its copy may lack what was written."""

    @abstractmethod
    def mirrors(self) -> Steps[tuple[MirrorState, ...]]:
        """Ask for this node's side of all mirrored disks."""

    @abstractmethod
    def initialise(self, disk: Disk) -> Steps[Outcome]:
        """Write new metadata: on the first node of a pair, the data there counts."""

    @abstractmethod
    def tune(self, disk: Disk) -> Steps[Outcome]:
        """Let a copy that is in use go by the disk's parameters as they are now."""

    @abstractmethod
    def meet(self, disk: Disk) -> Steps[Outcome]:
        """Wait until the nodes that keep the copies are connected, but not for long."""

    @abstractmethod
    def renew(self, disk: Disk) -> Steps[Outcome]:
        """Put new volumes in the place of this node's, which are kept aside."""

    @abstractmethod
    def restore(self, disk: Disk) -> Steps[Outcome]:
        """Take back :meth:`renew`."""

    @abstractmethod
    def release(self, disk: Disk) -> Steps[Outcome]:
        """Remove what :meth:`renew` kept aside."""
