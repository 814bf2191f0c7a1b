# SPDX-License-Identifier: BSD-2-Clause
"""``blockdev``: shared block devices that somebody else made (SAN, iSCSI)."""

import posixpath
from collections.abc import Mapping
from typing import Any

from moorage.disk_templates import FACTS
from moorage.errors import BadInput, Failed
from moorage.model import Disk
from moorage.storage.base import Template, VolumeRequest, nothing
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import Command, Outcome, Steps, Where
from moorage.units import MIB, Mib

_ROOT = "/dev/disk/"
"""Where udev gives a device one name on all nodes."""


class BlockDevice(Template):
    """Devices that are adopted and given back; their data is never touched."""

    name = "blockdev"
    capabilities = Capabilities(
        facts=FACTS["blockdev"], can=Can.ADOPT, programs=("blockdev",)
    )

    @classmethod
    def logical_id(cls, request: VolumeRequest) -> tuple[Any, ...]:
        """Return ``("manual", path)`` of the device that ``adopt`` names."""
        device = str(request.params.get("adopt") or "")
        if not device:
            raise BadInput(
                f"disk template '{cls.name}' makes no volumes: it adopts devices",
                hint=f"give adopt={_ROOT}…",
            )
        return ("manual", cls.adoptable(device))

    @classmethod
    def adoptable(cls, volume: str) -> str:
        """Return the path of a device without detours (``//``, ``/./``).

        Raises
        ------
        BadInput
            If it lies outside of the directory that udev fills.
        """
        path = posixpath.normpath(volume)
        if not path.startswith(_ROOT) or ".." in volume.split("/"):
            raise BadInput(
                f"Device node(s) {volume} lie outside {_ROOT} and cannot be adopted"
            )
        return path

    @classmethod
    def at_rest(cls, disk: Disk) -> Where:
        """Return the device: it is always there."""
        return Where(path=disk.volume, block=True)

    @classmethod
    def parameters(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keep nothing: the device is the disk's identity, not a parameter."""
        rest = {key: value for key, value in given.items() if key != "adopt"}
        return super().parameters(rest)

    def attach(self, disk: Disk) -> Steps[Where]:
        """Check that the device is there."""
        path = self.adoptable(disk.volume)
        found = yield Command(("test", "-b", path), check=False, reads=True)
        if found.code:
            raise Failed(
                f"device {path} is not a block device on node {self.site.node}",
                path=path,
                node=self.site.node,
            )
        return Where(path=path, block=True)

    def detach(self, disk: Disk) -> Steps[Outcome]:
        """Do nothing: the device stays as the operator set it up."""
        del disk
        return nothing()

    def remove(self, disk: Disk) -> Steps[Outcome]:
        """Let go of the device; its data stays."""
        del disk
        return nothing()

    def measure(self, disk: Disk) -> Steps[Mib]:
        """Return the device's size."""
        yield from self.attach(disk)
        found = yield Command(("blockdev", "--getsize64", disk.volume), reads=True)
        return Mib(int(found.stdout.strip() or 0) // MIB)
