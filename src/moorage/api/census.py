# SPDX-License-Identifier: BSD-2-Clause
"""How many objects there are of which state, counted on with each commit.

All are looked at once, and then only what changes: whoever asks walks through nothing.
"""

from collections import Counter

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
            told = _instance(one) if isinstance(one, Instance) else _disk(one)
            self._counts.subtract(self._told.pop(one.uuid, ()))
            self._counts.update(told)
            self._told[one.uuid] = told


def _instance(one: Instance) -> Counter[str]:
    ready = ACTIVE if one.disks_active else INACTIVE
    return Counter({f"instances {one.admin_state}": 1, ready: len(one.disks)})


def _disk(one: Disk) -> Counter[str]:
    states = {QUARANTINED: one.quarantine, BEHIND: one.behind}
    return Counter([DISKS, *(word for word, state in states.items() if state)])
