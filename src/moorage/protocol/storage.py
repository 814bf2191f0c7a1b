# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on a storage as a whole, whatever disks are in it."""

from msgspec import Struct

from moorage.model import Examined, Place, Volume

from .verb import Reading


class Listed(Struct, frozen=True, kw_only=True):
    """What a node told of a storage.

    Attributes
    ----------
    volumes
        All that it has.
    problem
        Why nobody can tell what it has; empty if the list is complete.
    """

    volumes: tuple[Volume, ...] = ()
    problem: str = ""


class ListVolumes(Reading[list[Listed]], frozen=True, kw_only=True, tag="volumes"):
    """Return which volumes some storages have here, in the order of the places."""

    long = True
    limit = 300.0  # a script may have to ask a storage system far away

    places: tuple[Place, ...] = ()


class ExamineStorage(Reading[list[Examined]], frozen=True, kw_only=True, tag="storage"):
    """Say of some places whether this node has what disks there need, and their room.

    Attributes
    ----------
    places
        Where to look; the answers are in their order.
    """

    long = True
    limit = 60.0  # a file server may be slow
    places: tuple[Place, ...] = ()
