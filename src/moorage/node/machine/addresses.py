# SPDX-License-Identifier: BSD-2-Clause
"""Addresses that this machine has for a while: the kernel takes them away in time.

What is ours shows in the kernel: it has an end, and new connections do not start from
it. So nothing is kept on a disk, and nobody need live to take it away.
"""

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import DecodeError, Struct, json

from moorage.errors import Failed, WrongState
from moorage.model.addresses import is_v6
from moorage.model.master_address import MasterAddress
from moorage.protocol import AddressThere

from . import neighbours

_LIMIT = 10.0
"""Seconds that ``ip`` gets."""
_FOREVER = (1 << 32) - 1
_TENTATIVE, _LOOKS = 0.1, 50
"""Seconds between two looks at whether the kernel found nobody else with an address of
IPv6, and how many there are."""


class _Address(Struct, frozen=True, kw_only=True):
    """An address as ``ip`` tells it."""

    local: str = ""
    prefixlen: int = 0
    valid_life_time: int = _FOREVER
    preferred_life_time: int = _FOREVER
    tentative: bool = False


class _Device(Struct, frozen=True, kw_only=True):
    ifname: str = ""
    addr_info: tuple[_Address, ...] = ()


class _Set(NamedTuple):
    """An address that is set on a device."""

    device: str
    address: _Address

    @property
    def ours(self) -> bool:
        """Whether it was set for a while only, and nothing starts from it."""
        told = self.address
        return told.valid_life_time != _FOREVER and not told.preferred_life_time


class KernelAddresses:
    """The addresses of this network namespace."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def look(self, wanted: MasterAddress) -> AddressThere:
        """Return whether an address is set here, and could be."""
        known, found = await self._found(wanted)
        problem = ""
        if wanted.device not in known:
            problem = f"it has no network device {wanted.device}"
        lasting = [one for one in found if not one.ours]
        for one in (*lasting, *found):
            return AddressThere(
                device=one.device, lasting=bool(lasting), problem=problem
            )
        return AddressThere(problem=problem)

    async def hold(self, wanted: MasterAddress, seconds: int) -> None:
        """Have an address for some seconds.

        Raises
        ------
        WrongState
            If somebody else has set it here, or another machine has it.
        Failed
            If the kernel does not take it.
        """
        async with self._turn:
            _, found = await self._found(wanted)
            for one in found:
                if not one.ours:
                    raise WrongState(
                        f"{wanted.ip} is set on {one.device} already, for good, and "
                        "not by Moorage",
                        hint=f"ip addr del {wanted.ip}/{one.address.prefixlen} dev "
                        f"{one.device}",
                    )
            here = [one for one in found if _is(one, wanted)]
            await self._remove(one for one in found if one not in here)
            if not here:
                await self._check_free(wanted)
            await _ip("addr", "replace", *_words(wanted, seconds))
            if not here and is_v6(wanted.ip):
                await self._accepted(wanted)
            neighbours.announce(wanted.device, wanted.ip)

    async def drop(self, wanted: MasterAddress) -> None:
        """Have an address no more, wherever it was set for a while."""
        async with self._turn:
            _, found = await self._found(wanted)
            await self._remove(one for one in found if one.ours)

    async def _check_free(self, wanted: MasterAddress) -> None:
        if is_v6(wanted.ip):
            return  # the kernel looks itself
        other = await neighbours.answering(wanted.device, wanted.ip)
        if other:
            raise _taken(wanted, other)

    async def _accepted(self, wanted: MasterAddress) -> None:
        """Wait until the kernel knows that nobody else has an address of IPv6."""
        for _ in range(_LOOKS):
            _, found = await self._found(wanted)
            mine = [one for one in found if _is(one, wanted)]
            if not mine:  # it takes one away that somebody else has
                raise _taken(wanted, "another machine")
            if not mine[0].address.tentative:
                return
            await asyncio.sleep(_TENTATIVE)

    async def _found(self, wanted: MasterAddress) -> tuple[set[str], list[_Set]]:
        """Return the names of all devices, and where an address is set."""
        told = await _ip("-json", "addr", "show")
        try:
            devices = json.decode(told, type=list[_Device])
        except DecodeError as error:
            raise Failed(f"what ip tells of addresses is unclear: {error}") from None
        found = [
            _Set(device.ifname, one)
            for device in devices
            for one in device.addr_info
            if one.local == wanted.ip
        ]
        return {one.ifname for one in devices}, found

    async def _remove(self, found: Iterator[_Set] | list[_Set]) -> None:
        for one in found:
            place = f"{one.address.local}/{one.address.prefixlen}"
            await _ip("addr", "del", place, "dev", one.device)


def _is(one: _Set, wanted: MasterAddress) -> bool:
    return (one.device, one.address.prefixlen) == (wanted.device, wanted.bits)


def _words(wanted: MasterAddress, seconds: int) -> tuple[str, ...]:
    place = (f"{wanted.ip}/{wanted.bits}", "dev", wanted.device)
    return (*place, "valid_lft", str(seconds), "preferred_lft", "0")


def _taken(wanted: MasterAddress, other: str) -> WrongState:
    return WrongState(
        f"{wanted.ip} is another machine's: on {wanted.device}, {other} answers for it",
        hint="gnt-cluster verify",
    )


async def _ip(*words: str) -> bytes:
    """Return what ``ip`` prints; raise `Failed` with its words if it fails."""
    try:
        running = await asyncio.create_subprocess_exec(
            "ip", *words, stdout=PIPE, stderr=PIPE
        )
    except OSError as error:
        raise Failed(f"ip does not run: {error.strerror}") from None
    try:
        async with asyncio.timeout(_LIMIT):
            out, told = await running.communicate()
    except TimeoutError:
        running.kill()
        raise Failed(f"ip {' '.join(words)} did not end in {_LIMIT:.0f} s") from None
    if running.returncode:
        why = " ".join(told.decode(errors="replace").split())
        raise Failed(f"ip {' '.join(words)}: {why}")
    return out
