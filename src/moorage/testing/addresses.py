# SPDX-License-Identifier: BSD-2-Clause
"""Addresses that a simulated machine has for a while."""

import time
from collections.abc import Callable

from moorage.errors import Failed, WrongState
from moorage.model.master_address import MasterAddress
from moorage.protocol import AddressThere


class SimAddresses:
    """What the kernel of a real machine does with such addresses.

    Attributes
    ----------
    held
        When each ends, in seconds of the clock, with what it is.
    lasting
        Addresses that somebody else has set for good, with their devices.
    devices
        The network devices that there are; None for any.
    taken
        Addresses that other machines answer for.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.held: dict[str, tuple[float, MasterAddress]] = {}
        self.lasting: dict[str, str] = {}
        self.devices: set[str] | None = None
        self.taken: set[str] = set()
        self._clock = clock

    def has(self, ip: str) -> bool:
        """Whether an address is here for now."""
        return self.held.get(ip, (0.0,))[0] > self._clock()

    async def look(self, wanted: MasterAddress) -> AddressThere:
        """Return whether an address is set here, and could be."""
        lasting = self.lasting.get(wanted.ip, "")
        device = self.held[wanted.ip][1].device if self.has(wanted.ip) else ""
        return AddressThere(
            device=lasting or device,
            lasting=bool(lasting),
            problem=self._problem(wanted),
        )

    def _problem(self, wanted: MasterAddress) -> str:
        if self.devices is None or wanted.device in self.devices:
            return ""
        return f"it has no network device {wanted.device}"

    async def hold(self, wanted: MasterAddress, seconds: int) -> None:
        """Have an address for some seconds."""
        if problem := self._problem(wanted):
            raise Failed(problem)
        if wanted.ip in self.lasting or wanted.ip in self.taken:
            raise WrongState(f"{wanted.ip} is somebody else's")
        self.held[wanted.ip] = (self._clock() + seconds, wanted)

    async def drop(self, wanted: MasterAddress) -> None:
        """Have an address no more."""
        self.held.pop(wanted.ip, None)
