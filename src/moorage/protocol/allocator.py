# SPDX-License-Identifier: BSD-2-Clause
"""Verbs about allocators: programs of a node's administrator that choose nodes."""

from moorage.model.uidpool import STANDARD, UidPool
from moorage.storage import limits

from .maintenance import Said
from .verb import Reading, Verb

_LEEWAY = 30.0
"""Seconds that the message takes to get there, and the answer back."""


class GetAllocators(Reading[tuple[str, ...]], frozen=True, tag="allocators"):
    """Return the names of this node's allocators."""


class RunAllocator(Verb[Said], frozen=True, kw_only=True, tag="allocator.run"):
    """Run an allocator, and return what it printed.

    Attributes
    ----------
    allocator
        Its name in the search path; no master can name another place.
    message
        The cluster and the request, as JSON: a file whose path is its first word.
    arguments
        Words that it gets besides.
    uid_pool
        The cluster's: it runs as a user of these, whom nobody else is.
    """

    reads = True
    limit = limits.ALLOCATOR + _LEEWAY
    long = True

    allocator: str
    message: str
    arguments: tuple[str, ...] = ()
    uid_pool: UidPool = STANDARD
