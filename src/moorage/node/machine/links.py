# SPDX-License-Identifier: BSD-2-Clause
"""What network cards can be connected to on this machine: bridges of both kinds."""

import asyncio
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from moorage.model import Link

OVS = "ovs-vsctl"
"""Open vSwitch's program."""
NFT = "nft"
"""The program of nftables."""
_INTERFACES = Path("/sys/class/net")
_PATIENCE = 5.0
"""Seconds that Open vSwitch gets to answer; without its daemon it never does."""


async def found() -> tuple[Link, ...]:
    """Return the bridges of this network namespace, by name."""
    return tuple(sorted([*kernels(), *await _switches()], key=lambda one: one.name))


def kernels(interfaces: Path = _INTERFACES) -> list[Link]:
    """Return the kernel's bridges."""
    found = [path.parent for path in interfaces.glob("*/bridge")]
    return [
        Link(name=at.name, vlans=setting(at, "vlan_filtering") == 1) for at in found
    ]


def setting(bridge: Path, name: str) -> int:
    """Return a setting of a bridge; 0 where the kernel has no such setting."""
    try:
        return int((bridge / "bridge" / name).read_text())
    except OSError:
        return 0


async def _switches() -> list[Link]:
    """Return the bridges of Open vSwitch."""
    program = shutil.which(OVS)
    if program is None:
        return []
    asked = await asyncio.create_subprocess_exec(
        program, f"--timeout={_PATIENCE:.0f}", "list-br", stdout=PIPE, stderr=DEVNULL
    )
    told, _ = await asked.communicate()
    names = told.decode(errors="replace").split() if not asked.returncode else []
    return [Link(name=name, kind="openvswitch", vlans=True) for name in names]
