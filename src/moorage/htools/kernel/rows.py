# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""Coming to a node, and leaving it: all that a node is asked for, on rows.

These are `moorage.htools.assignment` once more: the order of arithmetic is the same,
and so is every digit. Who is only planned touches the columns that count planned
instances, and no others.

What comes is checked before it is there (`why_not_run`, `why_not_keep`), so a move that
is made and one that is only weighed are asked the same.
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
            if u < -1:
                u = -2 - u
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
            if u < -1:  # it need not be here; if it is, it has the same room
                u = -2 - u
                if self.tables.kinds[node * self.tables.units + u] == col.ABSENT:
                    continue
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
        r = self.tables.row(row)
        strained = self.is_strained(i, r, r[col.KEPT], r[col.UNSAFE] == 0.0)
        why = self.why_not_run(i, row, node, 1.0, strained, force)
        if why == 0:
            self.run_on(i, row, 1.0)
            self.weight(i, row, node, 1.0)
        return why

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
        kept = max(r[col.KEPT], peer + t[col.I_KEEPS])
        strained = r[col.FREE] <= kept and r[col.UNSAFE] == 0.0
        why = self.why_not_keep(i, row, node, 0.0, 1.0, strained, force, there)
        if why == 0:
            self.weight(i, row, node, 1.0)
        if why == 0 and t[col.I_REAL] != 0.0:
            r[col.KEPT] = kept
            r[col.LOAD + 2] += t[col.I_LOAD + 2]
            r[col.COPIES] += 1.0
            self.judge(r)
        return why

    def runs(self, i, j, freed, kept):
        """Say whether an instance may run on a node.

        0: it cannot, 1: only if forced, 2: it may.

        Parameters
        ----------
        freed
            1 if its second copy leaves the node first, else 0.
        kept
            The node's reserve then.
        """
        r = self.tables.row(j)
        safe = r[col.FREE] > kept if freed != 0.0 else r[col.UNSAFE] == 0.0
        strained = self.is_strained(i, r, kept, safe)
        if self.why_not_run(i, j, j, 1.0 - freed, strained, False) == 0:
            return 2
        return 1 if self.why_not_run(i, j, j, 1.0 - freed, strained, True) == 0 else 0

    def holds(self, i, j, main, freed):
        """Say whether a node may keep the second copy, the reserve aside.

        The same numbers.

        Parameters
        ----------
        main
            1 if the instance ran there until now, else 0.
        freed
            1 if its disk was there until now, else 0.
        """
        times = 1.0 - freed
        if self.why_not_keep(i, j, j, main, times, False, False, False) == 0:
            return 2
        why = self.why_not_keep(i, j, j, main, times, False, True, False)
        return 1 if why == 0 else 0

    def still_runs(self, i, j):
        """Say whether a node still has what an instance that runs there must have."""
        free = self.tables.row(j)[col.FREE]
        return free > 0.0 and self.lacks_room(i, j, j, 0.0, True, False) == 0

    def is_strained(self, i, r, kept, safe):
        """Say whether an instance that runs on a row ends its N+1."""
        return safe and r[col.FREE] - self.tables.inst(i)[col.I_RUNS] <= kept

    def why_not_run(self, i, row, node, times, strained, force):
        """Say why an instance cannot run on a row; 0 if it can.

        Parameters
        ----------
        times
            0 if the row has its disks already, else 1.
        strained
            Whether that ends N+1.
        force
            Skip what protects comfort only.
        """
        r, t = self.tables.row(row), self.tables.inst(i)
        if t[col.I_REAL] != 0.0:
            if r[col.FREE] - t[col.I_RUNS] <= 0.0:
                return col.NO_MEMORY
            why = self.lacks_room(i, row, node, times, force, False)
            if why != 0:
                return why
            if not force:
                if strained:
                    return col.NO_MEMORY
                if self.is_over(r, r[col.CPU] + t[col.I_CPU]):
                    return col.NO_CPU
                if self.tables.tags > 0 and self.tables.clashes(i, node) > 0:
                    return col.NO_TAGS
        if force:
            return 0
        if r[col.FREE_ALL] - t[col.I_MEM] <= 0.0:
            return col.NO_MEMORY
        why = self.lacks_room_later(i, r, times)
        if why == 0 and self.is_over(r, r[col.CPU_ALL] + t[col.I_CPU]):
            return col.NO_CPU
        return why

    def why_not_keep(self, i, row, node, main, times, strained, force, there):
        """Say why a row cannot keep the second copy of an instance; 0 if it can.

        Parameters
        ----------
        main
            1 if the instance ran there until now, else 0.
        """
        r, t = self.tables.row(row), self.tables.inst(i)
        if t[col.I_REAL] != 0.0:
            why = self.lacks_room(i, row, node, times, force, there)
            if why != 0:
                return why
            free = r[col.FREE] + main * t[col.I_RUNS]
            if not force and (t[col.I_KEEPS] >= free or strained):
                return col.NO_MEMORY
        if force:
            return 0
        why = self.lacks_room_later(i, r, times)
        if why == 0 and t[col.I_KEEPS] >= r[col.FREE_ALL] + main * t[col.I_MEM]:
            return col.NO_MEMORY
        return why

    def lacks_room(self, i, row, node, times, force, there):
        """Say what of disk and spindles a row lacks for so many times an instance."""
        r = self.tables.row(row)
        if not there or r[col.UNITS] != 0.0:
            fit = self.space(i, row, node, times)
            if fit == 0 or (fit == 1 and not force):
                return col.NO_DISK
        if self.tables.inst(i)[col.I_LOCAL] == 0.0:
            return 0
        if r[col.EXCLUSIVE] != 0.0:
            left = self.spindles_left(i, r[col.WHOLE], times)
            return col.NO_SPINDLES if left < 0.0 else 0
        crowded = not force and self.is_crowded(i, r, r[col.SPINDLES], times)
        return col.NO_DISK if crowded else 0

    def lacks_room_later(self, i, r, times):
        """Say the same with planned instances counted."""
        t = self.tables.inst(i)
        if t[col.I_LOCAL] == 0.0:
            return 0
        left = r[col.DISK_ALL] - times * t[col.I_DISK]
        if r[col.UNITS] == 0.0 and (left <= 0.0 or left < r[col.FLOOR]):
            return col.NO_DISK
        if r[col.EXCLUSIVE] != 0.0:
            left = self.spindles_left(i, r[col.WHOLE_ALL], times)
            return col.NO_SPINDLES if left < 0.0 else 0
        crowded = self.is_crowded(i, r, r[col.SPINDLES_ALL], times)
        return col.NO_DISK if crowded else 0

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

    def is_crowded(self, i, r, used, times):
        """Say whether that is more use of spindles than the policy allows."""
        return used + times * self.tables.inst(i)[col.I_SPINDLES] > r[col.SPINDLE_LIMIT]

    def is_over(self, r, used):
        """Say whether so many virtual processors are more than the policy allows."""
        return 0.0 <= r[col.RATIO] < used / r[col.CPUS]

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
