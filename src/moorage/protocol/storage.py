# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on a storage as a whole, whatever disks are in it."""

from msgspec import Struct

from moorage.model import Volume

from .verb import Reading


class Place(Struct, frozen=True, kw_only=True):
    """A storage of a disk template, as a node is told of it.

    Attributes
    ----------
    settings
        The fields of the cluster that the template needs, as pairs of name and value.
    params
        The parameters of a disk that would be in it, as pairs.
    """

    template: str
    settings: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()


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
