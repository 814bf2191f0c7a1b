# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison with the clusters tells of."""

from collections.abc import Callable

from msgspec import Struct


class Finding(Struct, frozen=True):
    """Something that is not as it should be.

    Attributes
    ----------
    kind
        ``job``, ``disk``, ``size``, ``snapshot``, ``server``, ``stale`` or ``orphan``.
    about
        The server or the volume.
    sentence
        What is wrong.
    repair
        Sets it right; None where a person has to look.
    """

    kind: str
    about: str
    sentence: str
    repair: Callable[[], object] | None = None
