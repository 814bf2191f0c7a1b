# SPDX-License-Identifier: BSD-2-Clause
"""A request of somebody who has signed in, and what comes of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moorage.client.aio import AsyncClient
from moorage.jobs.fields import Field


class Wish(NamedTuple):
    """What the door knows of an operation.

    Attributes
    ----------
    fields
        Its fields, by name.
    about
        What it does, in a sentence.
    refused
        Why who asks may not; empty if he may.
    """

    fields: Mapping[str, Field]
    about: str
    refused: str


@dataclass(slots=True)
class Visit:
    """A request.

    Attributes
    ----------
    client
        Asks in the user's name.
    user, role
        Who asks, and the word of his role.
    secret
        Stands in each of his forms.
    path
        The parts of the address that vary.
    query, form
        What stands behind the question mark, and what was filled in.
    wish
        Returns what the door knows of an operation, by its ``OP_ID``.
    refused
        Returns why he may not ask for a method of a resource, by these; else nothing.
    """

    client: AsyncClient
    user: str
    role: str
    secret: str
    wish: Callable[[str], Wish]
    refused: Callable[[str, str], str]
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def asked(self, name: str, default: str = "") -> str:
        """Return the first value of an argument."""
        return next(iter(self.query.get(name, ())), default)

    def filled(self, name: str, default: str = "") -> str:
        """Return the first value of a field of the form."""
        return next(iter(self.form.get(name, ())), default)


class Page(NamedTuple):
    """What is shown.

    Attributes
    ----------
    template
        Its file, without the ending.
    values
        What that needs.
    status
        As of HTTP.
    paints
        Whether its script makes pictures, out of what a guest's screen shows.
    """

    template: str
    values: Mapping[str, Any]
    status: int = 200
    paints: bool = False


class Elsewhere(NamedTuple):
    """Where the browser goes next."""

    address: str
