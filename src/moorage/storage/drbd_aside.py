# SPDX-License-Identifier: BSD-2-Clause
"""The volumes of a copy that is made anew: kept aside until the new ones are good."""

from moorage.model import Disk

from .command import Outcome, Steps
from .drbd_side import aside_of, renamed
from .templates.plain import Plain


def keep(plain: Plain, disk: Disk) -> Steps[Outcome]:
    """Keep the volumes that are not kept aside yet; one that is lost cannot be."""
    for child in disk.children:
        aside = yield from plain.there(aside_of(child))
        found = yield from plain.there(child)
        if found and not aside:
            yield renamed(child, aside_of(child))
    return Outcome.CHANGED


def are_kept(plain: Plain, disk: Disk) -> Steps[bool]:
    """Say whether any volume is kept aside."""
    for child in disk.children:
        found = yield from plain.there(aside_of(child))
        if found:
            return True
    return False


def put_back(plain: Plain, disk: Disk) -> Steps[Outcome]:
    """Put volumes back that are kept aside, and remove what took their place."""
    for child in disk.children:
        aside = yield from plain.there(aside_of(child))
        if aside:
            yield from plain.remove(child)
            yield renamed(aside_of(child), child)
    return Outcome.CHANGED


def drop(plain: Plain, disk: Disk) -> Steps[Outcome]:
    """Remove the volumes that are kept aside."""
    found = Outcome.UNCHANGED
    for child in disk.children:
        removed = yield from plain.remove(aside_of(child))
        found = Outcome.CHANGED if Outcome.CHANGED in (found, removed) else found
    return found
