# SPDX-License-Identifier: BSD-2-Clause
"""Rows of instances, kept from one plan to the next.

Between two plans a few of thousands of instances change. The row of one is the same as
long as its own records are, and what it depends on besides.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from moorage import htools
from moorage.model import Disk, Instance
from moorage.ops.volumes.units import Named

Records = tuple[Instance | Disk, ...]
"""An instance with its disks."""
_MOST = 4
"""Readings whose rows are kept, as those of several groups."""


@dataclass(slots=True)
class KeptRows:
    """The rows of one reading of the cluster.

    Attributes
    ----------
    context
        What they depend on, besides the records of their instances.
    reached
        The nodes that reach some providers: one object for all rows that have it, so
        that it is compared at once.
    """

    context: tuple[object, ...]
    reached: dict[frozenset[Named], frozenset[int] | None] = field(default_factory=dict)
    _rows: dict[str, tuple[Records, htools.InstanceRow]] = field(default_factory=dict)

    def row(
        self,
        instance: Instance,
        disks: list[Disk],
        make: Callable[[], htools.InstanceRow],
    ) -> htools.InstanceRow:
        """Return the row of an instance; `make` it, if it is not what it was."""
        records: Records = (instance, *disks)
        known = self._rows.get(instance.uuid)
        if known and known[0] == records:
            return known[1]
        made = make()
        self._rows[instance.uuid] = records, made
        return made

    def weed(self, instances: int) -> None:
        """Forget all, if most of it is of instances that are no more."""
        if len(self._rows) > 2 * instances:
            self._rows = {}


class Readings:
    """The readings whose rows are kept, the last one first."""

    def __init__(self) -> None:
        self._shelf: tuple[KeptRows, ...] = ()

    def of(self, context: tuple[object, ...]) -> KeptRows:
        """Return what is kept of a reading; nothing yet, if it is a new one."""
        for known in self._shelf:
            if known.context == context:
                return known
        made = KeptRows(context)
        self._shelf = made, *self._shelf[: _MOST - 1]
        return made
