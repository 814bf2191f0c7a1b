# SPDX-License-Identifier: BSD-2-Clause
"""Verbs about Ganeti's ``ssconf`` files, which scripts of a node read."""

from .verb import Reading, Verb


class LookAtSsconf(Reading[str], frozen=True, tag="ssconf.look"):
    """Return why the files cannot be written here; empty if they can."""


class WriteSsconf(Verb[None], frozen=True, kw_only=True, tag="ssconf.write"):
    """Write the files; put Ganeti's own aside if they lie there.

    Attributes
    ----------
    files
        The text of each by its name, without ``ssconf_``.
    """

    files: dict[str, str]


class RestoreSsconf(Verb[None], frozen=True, tag="ssconf.restore"):
    """Remove the files that were written, and bring Ganeti's own back."""
