# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on the copies of mirrored disks."""

from moorage.model import MirrorState
from moorage.storage import Outcome

from .verb import A_WEEK, OnDisk, Reading


class GetMirrors(Reading[list[MirrorState]], frozen=True, tag="mirrors"):
    """Return this node's side of all mirrored disks."""

    long = True


class AwaitSync(OnDisk[MirrorState], frozen=True, kw_only=True, tag="mirror.sync"):
    """Wait until both copies are the same; say how far they are meanwhile.

    It changes nothing, and so nothing that is done to the disk waits for it.

    Attributes
    ----------
    alone
        Whether it is enough that this node's own copy is good.
    """

    reads = True
    limit = A_WEEK
    alone: bool = False


class BeginMirror(OnDisk[Outcome], frozen=True, tag="mirror.begin"):
    """Write new metadata: on the first node of the pair, the data there counts."""


class RenewCopy(OnDisk[Outcome], frozen=True, tag="mirror.renew"):
    """Put new volumes in the place of this node's; they are copied from the other.

    The old ones are kept aside, and nobody writes to them any more.
    """


class RestoreCopy(OnDisk[Outcome], frozen=True, tag="mirror.restore"):
    """Put back what :class:`RenewCopy` kept aside, and remove what took its place."""


class ReleaseCopy(OnDisk[Outcome], frozen=True, tag="mirror.release"):
    """Remove what :class:`RenewCopy` kept aside."""
