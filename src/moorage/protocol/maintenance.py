# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that look after a node itself: its LVM, its power, its own scripts."""

from msgspec import Struct

from moorage.model.lvm import Lvm

from .verb import Reading, Verb


class GetLvm(Reading[Lvm], frozen=True, tag="lvm"):
    """Return the physical and logical volumes of this node."""

    long = True
    limit = 60.0


class SetAllocatable(Verb[None], frozen=True, kw_only=True, tag="lvm.allocatable"):
    """Say whether new volumes may lie on a physical volume.

    Attributes
    ----------
    device
        The physical volume.
    wanted
        Whether they may.
    """

    device: str
    wanted: bool


class RepairGroup(Verb[None], frozen=True, kw_only=True, tag="lvm.repair"):
    """Take devices that are gone out of a volume group.

    Attributes
    ----------
    group
        The volume group.
    """

    group: str


class PowerCycle(Verb[None], frozen=True, tag="node.powercycle"):
    """Reboot this node at once, without a word to its guests."""

    stays = True


class Said(Struct, frozen=True, kw_only=True):
    """What an administrator's script printed, and its exit status."""

    output: str
    code: int = 0


class RunScript(Verb[Said], frozen=True, kw_only=True, tag="script.run"):
    """Run a script that this node's administrator put into a directory for it.

    Attributes
    ----------
    directory
        ``restricted-commands``, or ``oob`` for programs that switch power.
    script
        Its name there; no master can name another place.
    arguments
        Words that it gets.
    """

    repeatable = False
    stays = True

    directory: str
    script: str
    arguments: tuple[str, ...] = ()
