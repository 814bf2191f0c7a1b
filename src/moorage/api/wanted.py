# SPDX-License-Identifier: BSD-2-Clause
"""Which of the things that happen somebody wants to hear of."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Wanted(NamedTuple):
    """What a stream of events is to tell; whatever is empty filters nothing.

    Attributes
    ----------
    kinds
        Of objects, or ``job``.
    jobs
        Numbers of jobs: their own events, and what they changed.
    tags
        Of objects.
    """

    kinds: frozenset[str] = frozenset()
    jobs: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()

    def of(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return an entry of the feed with what is wanted of it; None for nothing."""
        if self == _ALL:
            return entry
        found = [one for one in entry["events"] if self._is_wanted(entry, one)]
        return {**entry, "events": found} if found else None

    def _is_wanted(self, entry: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
        about = event.get("job") or entry.get("job")
        return (
            (not self.kinds or event["kind"] in self.kinds)
            and (not self.jobs or about in self.jobs)
            and (not self.tags or not self.tags.isdisjoint(event.get("tags", ())))
        )


_ALL = Wanted()
