# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""Coming to a node, and leaving it: all that a node is asked for, on rows.

These are `moorage.htools.assignment` once more: the order of arithmetic is the same,
and so is every digit. Who is only planned touches the columns that count planned
instances, and no others.

What comes is checked when it is there (`lacks`, `strains`), for a move that is made,
and before (`runs`, `holds`), for one that is only weighed.
"""

from moorage.htools.kernel import columns as col


class Rows:
    """Rows that change as instances come and go."""

    def __init__(self, tables):
        self.tables = tables
        self.here = 0.0

    def copy(self, src, dst):
        """Copy a row, and its units."""
        a, b = self.tables.row(src), self.tables.row(dst)
        for c in range(col.W):
            b[c] = a[c]
        for u in range(self.tables.units):
            self.tables.stock[dst * self.tables.units + u] = self.tables.stock[
                src * self.tables.units + u
            ]

    def unsafe(self, j):
        """Return how many instances sit on a node that fails N+1."""
        r = self.tables.row(j)
        return r[col.MAINS] + r[col.COPIES] if r[col.UNSAFE] != 0.0 else 0.0

    def judge(self, r):
        """Note whether the free memory of a row covers its reserve."""
        r[col.UNSAFE] = 1.0 if r[col.FREE] <= r[col.KEPT] else 0.0

    def weight(self, i, row, node, by):
        """Add disk and spindles of so many times an instance to a row."""
        t = self.tables.inst(i)
        r = self.tables.row(row)
        r[col.DISK_ALL] -= by * t[col.I_DISK]
        if r[col.EXCLUSIVE] != 0.0:
            r[col.WHOLE_ALL] = self.spindles_left(i, r[col.WHOLE_ALL], by)
        else:
            r[col.SPINDLES_ALL] += by * t[col.I_SPINDLES]
        if t[col.I_REAL] == 0.0:
            return
        r[col.DISK] -= by * t[col.I_DISK]
        if r[col.EXCLUSIVE] != 0.0:
            r[col.WHOLE] = self.spindles_left(i, r[col.WHOLE], by)
        else:
            r[col.SPINDLES] += by * t[col.I_SPINDLES]
        if self.tables.units > 0 and r[col.UNITS] != 0.0:
            self.settle(i, row, node, by)

    def spindles_left(self, i, before, by):
        """Return the free spindles of an exclusive node; -1 for an unknown need."""
        need = self.tables.inst(i)[col.I_WHOLE]
        if need < 0.0:
            return -1.0 if by > 0.0 else before
        return before - by * need

    def settle(self, i, row, node, by):
        """Take so many times the wants of an instance from the units of a row."""
        for c in range(
            self.tables.first(i, col.I_WANT), self.tables.last(i, col.I_WANT)
        ):
            u = self.tables.wanted[c]
            if (
                u >= 0
                and self.tables.kinds[node * self.tables.units + u] == col.COUNTED
            ):
                self.tables.stock[row * self.tables.units + u] -= (
                    by * self.tables.sizes[c]
                )

    def stocked(self, i, row, node, by):
        """Say whether the units of a row hold so many times an instance more.

        0: they do not, 1: only with the room that should stay free, 2: they do.
        """
        fit = 2
        for c in range(
            self.tables.first(i, col.I_WANT), self.tables.last(i, col.I_WANT)
        ):
            u = self.tables.wanted[c]
            if u < 0 or self.tables.kinds[node * self.tables.units + u] == col.ABSENT:
                return 0
            if self.tables.kinds[node * self.tables.units + u] == col.COUNTED:
                left = (
                    self.tables.stock[row * self.tables.units + u]
                    - by * self.tables.sizes[c]
                )
                if left < 0.0:
                    return 0
                if left < self.tables.floors[node * self.tables.units + u]:
                    fit = 1
        return fit

    def run_on(self, i, row, by):
        """Add so many times an instance to what runs on a row."""
        r = self.tables.row(row)
        t = self.tables.inst(i)
        r[col.CPU_ALL] += by * t[col.I_CPU]
        r[col.FREE_ALL] -= by * t[col.I_MEM]
        if t[col.I_REAL] == 0.0:
            return
        r[col.FREE] -= by * t[col.I_RUNS]
        r[col.CPU] += by * t[col.I_CPU]
        for c in range(4):
            r[col.LOAD + c] += by * t[col.I_LOAD + c]
        r[col.MAINS] += by
        self.judge(r)

    def drop_primary(self, i, row, node):
        """Take an instance off a row it runs on."""
        self.run_on(i, row, -1.0)
        self.weight(i, row, node, -1.0)

    def drop_secondary(self, i, row, node, kept):
        """Take the second copy off a row; `kept` is the reserve without it."""
        self.weight(i, row, node, -1.0)
        if self.tables.inst(i)[col.I_REAL] == 0.0:
            return
        r = self.tables.row(row)
        r[col.KEPT] = kept
        r[col.LOAD + 2] -= self.tables.inst(i)[col.I_LOAD + 2]
        r[col.COPIES] -= 1.0
        self.judge(r)

    def add_primary(self, i, row, node, force):
        """Run an instance on a row; return 0, or the number of the refusal."""
        r, t = self.tables.row(row), self.tables.inst(i)
        failed = r[col.UNSAFE]
        self.run_on(i, row, 1.0)
        self.weight(i, row, node, 1.0)
        why = 0
        if t[col.I_REAL] != 0.0:
            why = self.lacks(i, row, node, force)
            if why == 0 and not force:
                why = self.strains(i, row, node, failed)
        return why if why != 0 or force else self.lacks_later(i, row)

    def lacks(self, i, row, node, force):
        """Say what a row that has an instance has no more of."""
        r, local = self.tables.row(row), self.tables.inst(i)[col.I_LOCAL] != 0.0
        if r[col.FREE] <= 0.0:
            return col.NO_MEMORY
        fit = self.space(i, row, node, 0.0)
        if fit == 0 or (fit == 1 and not force):
            return col.NO_DISK
        if local and r[col.EXCLUSIVE] != 0.0 and r[col.WHOLE] < 0.0:
            return col.NO_SPINDLES
        return 0

    def space(self, i, row, node, times):
        """Say whether a row has disk for so many times an instance more.

        0: it has not, 1: only with the room that should stay free, 2: it has.
        """
        r, t = self.tables.row(row), self.tables.inst(i)
        if r[col.UNITS] != 0.0:
            return self.stocked(i, row, node, times)
        if t[col.I_LOCAL] == 0.0:
            return 2
        left = r[col.DISK] - times * t[col.I_DISK]
        if left <= 0.0:
            return 0
        return 1 if left < r[col.FLOOR] else 2

    def strains(self, i, row, node, failed):
        """Say what only protects comfort and is not kept by a row with an instance."""
        r = self.tables.row(row)
        if (
            self.tables.inst(i)[col.I_LOCAL] != 0.0
            and r[col.SPINDLES] > r[col.SPINDLE_LIMIT]
        ):
            return col.NO_DISK
        if r[col.UNSAFE] != 0.0 and failed == 0.0:
            return col.NO_MEMORY
        if self.is_over(r, r[col.CPU]):
            return col.NO_CPU
        return col.NO_TAGS if self.tables.clashes(i, node) > 0 else 0

    def lacks_later(self, i, row):
        """Say what a row has no more of with planned instances counted."""
        r = self.tables.row(row)
        if r[col.FREE_ALL] <= 0.0:
            return col.NO_MEMORY
        why = 0
        if self.tables.inst(i)[col.I_LOCAL] != 0.0:
            why = self.lacks_disk_later(i, r, 0.0)
        if why == 0 and self.is_over(r, r[col.CPU_ALL]):
            return col.NO_CPU
        return why

    def lacks_disk_later(self, i, r, times):
        """Say the same of disk and spindles, with so many times an instance more."""
        t = self.tables.inst(i)
        left = r[col.DISK_ALL] - times * t[col.I_DISK]
        if r[col.UNITS] == 0.0 and (left <= 0.0 or left < r[col.FLOOR]):
            return col.NO_DISK
        used = r[col.SPINDLES_ALL]
        if r[col.EXCLUSIVE] == 0.0:
            used += times * t[col.I_SPINDLES]
        elif self.spindles_left(i, r[col.WHOLE_ALL], times) < 0.0:
            return col.NO_SPINDLES
        return col.NO_DISK if used > r[col.SPINDLE_LIMIT] else 0

    def is_over(self, r, used):
        """Say whether so many virtual processors are more than the policy allows."""
        return 0.0 <= r[col.RATIO] < used / r[col.CPUS]

    def add_secondary(self, i, row, node, peer, force, there):
        """Keep the second copy on a row; return 0, or the number of the refusal.

        Parameters
        ----------
        peer
            What the row keeps for the primary already, MiB.
        there
            Whether the copy's data is there already.
        """
        r, t = self.tables.row(row), self.tables.inst(i)
        failed = r[col.UNSAFE]
        self.weight(i, row, node, 1.0)
        if t[col.I_REAL] != 0.0:
            r[col.KEPT] = max(r[col.KEPT], peer + t[col.I_KEEPS])
            r[col.LOAD + 2] += t[col.I_LOAD + 2]
            r[col.COPIES] += 1.0
            self.judge(r)
            why = self.lacks_for_copy(i, row, node, force, there)
            if why != 0:
                return why
        if force:
            return 0
        if t[col.I_REAL] != 0.0:
            if r[col.SPINDLES] > r[col.SPINDLE_LIMIT]:
                return col.NO_DISK
            if t[col.I_KEEPS] >= r[col.FREE] or (
                r[col.UNSAFE] != 0.0 and failed == 0.0
            ):
                return col.NO_MEMORY
        why = self.lacks_disk_later(i, r, 0.0)
        if why == 0 and t[col.I_KEEPS] >= r[col.FREE_ALL]:
            return col.NO_MEMORY
        return why

    def lacks_for_copy(self, i, row, node, force, there):
        """Say what a row that has a second copy has no more of."""
        r = self.tables.row(row)
        if r[col.UNITS] != 0.0:
            fit = self.stocked(i, row, node, 0.0)
            if fit == 0 or (fit == 1 and not (force or there)):
                return col.NO_DISK
        elif not there and r[col.DISK] <= 0.0:
            return col.NO_DISK
        elif not force and r[col.DISK] < r[col.FLOOR]:
            return col.NO_DISK
        if r[col.EXCLUSIVE] != 0.0 and r[col.WHOLE] < 0.0:
            return col.NO_SPINDLES
        return 0

    # What is weighed is not there yet. 0: cannot be, 1: only if forced, 2: may be.

    def runs(self, i, j, freed, kept):
        """Say whether an instance may run on a node.

        Parameters
        ----------
        freed
            1 if its second copy leaves the node first, else 0.
        kept
            The node's reserve then.
        """
        r, t = self.tables.row(j), self.tables.inst(i)
        fit = 2
        if t[col.I_REAL] != 0.0:
            left = r[col.FREE] - t[col.I_RUNS]
            fit = 0 if left <= 0.0 else self.room(i, j, 1.0 - freed)
            if fit == 0:
                return 0
            if left <= kept and (
                r[col.FREE] > kept if freed != 0.0 else r[col.UNSAFE] == 0.0
            ):
                return 1
            if self.is_over(r, r[col.CPU] + t[col.I_CPU]):
                return 1
            if self.tables.tags > 0 and self.tables.clashes(i, j) > 0:
                return 1
        if r[col.FREE_ALL] - t[col.I_MEM] <= 0.0:
            return 1
        if self.is_over(r, r[col.CPU_ALL] + t[col.I_CPU]):
            return 1
        return 1 if self.crowds(i, r, 1.0 - freed) else fit

    def holds(self, i, j, main, freed):
        """Say whether a node may keep the second copy, the reserve aside.

        Parameters
        ----------
        main
            1 if the instance ran there until now, else 0.
        freed
            1 if its disk was there until now, else 0.
        """
        r, t = self.tables.row(j), self.tables.inst(i)
        fit = 2
        if t[col.I_REAL] != 0.0:
            fit = self.room(i, j, 1.0 - freed)
            if fit == 0:
                return 0
            if t[col.I_KEEPS] >= r[col.FREE] + main * t[col.I_RUNS]:
                return 1
        if t[col.I_KEEPS] >= r[col.FREE_ALL] + main * t[col.I_MEM]:
            return 1
        return 1 if self.crowds(i, r, 1.0 - freed) else fit

    def room(self, i, j, times):
        """Say whether a node has disk and spindles for so many times an instance."""
        r, t = self.tables.row(j), self.tables.inst(i)
        fit = self.space(i, j, j, times)
        if fit == 0 or t[col.I_LOCAL] == 0.0:
            return fit
        if r[col.EXCLUSIVE] != 0.0:
            return 0 if self.spindles_left(i, r[col.WHOLE], times) < 0.0 else fit
        over = r[col.SPINDLES] + times * t[col.I_SPINDLES] > r[col.SPINDLE_LIMIT]
        return 1 if over else fit

    def crowds(self, i, r, times):
        """Say whether that is too much with planned instances counted."""
        if self.tables.inst(i)[col.I_LOCAL] == 0.0:
            return False
        return self.lacks_disk_later(i, r, times) != 0

    def reserve_without(self, i):
        """Return what the secondary keeps when the instance is gone."""
        p, s = self.tables.home(i), self.tables.second(i)
        before = self.tables.peers[s * self.tables.n + p]
        if (
            before < self.tables.row(s)[col.KEPT]
            or self.tables.inst(i)[col.I_REAL] == 0.0
        ):
            return self.tables.row(s)[col.KEPT]
        top = max(before - self.tables.inst(i)[col.I_KEEPS], 0.0)
        for j in range(self.tables.n):
            if j != p and self.tables.peers[s * self.tables.n + j] > top:
                top = self.tables.peers[s * self.tables.n + j]
        return top

    def reserve(self, i):
        """Compute the reserve of the secondary without the instance."""
        self.here = self.reserve_without(i) if self.tables.second(i) >= 0 else 0.0
