# SPDX-License-Identifier: BSD-2-Clause
"""The hypervisors that we ship: one function each, and one line here."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from moorage.hypervisors import FAKE, KVM, check_hypervisor
from moorage.node.machine.images import Images

from .base import Hypervisor
from .wiring import Wiring

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """What a node has for its hypervisor.

    Attributes
    ----------
    run
        Directory of the node's running state; a hypervisor keeps a directory in it.
    address
        Where guests that migrate arrive.
    images
        Opens image files.
    wiring
        Connects network cards.
    ganeti
        Where Ganeti keeps what it knows of the guests that it started.
    unsafe_live_emulation
        Whether emulated guests run while they are sent, and may lose what they write.
    """

    run: Path
    address: str
    images: Images
    wiring: Wiring
    ganeti: Path
    unsafe_live_emulation: bool = False


def hypervisor_named(name: str, station: Station) -> Hypervisor:
    """Return the hypervisor called `name`, as a node has it.

    Raises
    ------
    BadInput
        If there is none; the sentence names those that exist.
    """
    check_hypervisor(name)
    return MAKERS[name](station)


# A node loads the one that it has.
def _kvm(station: Station) -> Hypervisor:
    from .kvm import Kvm  # noqa: PLC0415
    from .kvm.adopting import Ganetis  # noqa: PLC0415

    run, wiring = station.run / KVM, station.wiring
    found = Kvm(run, station.address, station.images, wiring=wiring)
    found.ganetis = Ganetis(station.ganeti, run)
    found.unsafe_live_emulation = station.unsafe_live_emulation
    if found.unsafe_live_emulation:
        _LOG.warning("unsafe_live_emulation: emulated guests may lose what they write")
    return found


def _fake(station: Station) -> Hypervisor:
    from .fake import Fake  # noqa: PLC0415

    return Fake(station.run / FAKE)


MAKERS: Mapping[str, Callable[[Station], Hypervisor]] = {KVM: _kvm, FAKE: _fake}
"""What makes each hypervisor."""
