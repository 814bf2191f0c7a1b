# SPDX-License-Identifier: BSD-2-Clause
"""How many objects there are of which state, counted on with each commit.

All are looked at once, and then only what changes: whoever asks walks through nothing.
"""

from collections import Counter
from functools import cache

from moorage.model import Change, Config, Disk, Instance
from moorage.model.objects import Entity
from moorage.store import ConfigStore

DISKS, QUARANTINED, BEHIND = "disks", "quarantined", "behind"
"""Disks in all, those in quarantine, and those one copy of which missed writes."""
ACTIVE, INACTIVE = "active", "inactive"
"""Disks of instances, by whether their nodes hold them ready."""


class Census:
    """The counts of one configuration, which it follows from the first question on."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._told: dict[str, Counter[str]] = {}
        self._config_store: ConfigStore | None = None

    def of(self, config_store: ConfigStore) -> Counter[str]:
        """Return how many there are, by the words above, and ``instances STATE``."""
        if self._config_store is not config_store:
            self._counts, self._told, self._config_store = Counter(), {}, config_store
            self._walk(config_store.config)
            config_store.watchers.append(self._heard)
        return self._counts

    def _walk(self, config: Config) -> None:
        for kind in (Instance, Disk):
            for one in config.all(kind):
                self._take(one)

    def _heard(self, change: Change) -> None:
        for one in change.drop:
            self._counts.subtract(self._told.pop(one.uuid, ()))
        for one in change.put:
            self._take(one)

    def _take(self, one: Entity) -> None:
        if isinstance(one, Instance | Disk):
            told = (
                _instance(one.admin_state, len(one.disks), active=one.disks_active)
                if isinstance(one, Instance)
                else _disk(quarantined=bool(one.quarantine), behind=bool(one.behind))
            )
            self._counts.subtract(self._told.pop(one.uuid, ()))
            self._counts.update(told)
            self._told[one.uuid] = told


# Ten thousands of objects have a few dozens of states: each is counted in one place.


@cache
def _instance(state: str, disks: int, *, active: bool) -> Counter[str]:
    return Counter({f"instances {state}": 1, ACTIVE if active else INACTIVE: disks})


@cache
def _disk(*, quarantined: bool, behind: bool) -> Counter[str]:
    states = {QUARANTINED: quarantined, BEHIND: behind}
    return Counter([DISKS, *(word for word, state in states.items() if state)])
