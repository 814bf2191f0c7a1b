# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""Nodes and instances as rows of numbers; coming to a node, and leaving it.

These are `moorage.htools.verbs` once more, on rows: the order of arithmetic is the
same, and so is every digit.
"""

from array import array

import cython

from moorage.htools.kernel import columns as col


class Rows:
    """Nodes and instances as rows, and the parts of the score that they add up to.

    Parameters
    ----------
    arrays
        Seven arrays that whoever asks fills and changes:

        rows : ((n + 3) * W,)
            Columns of each node, then three rows of scratch.
        insts : (m * IW,)
            Columns of each instance.
        peers : (n * n,)
            Memory that the first node keeps for instances of the second, MiB.
        tagged : (n * tags,)
            How many primaries of a node carry a tag.
        taglist : (any,) of int
            Tags of the instances, one after the other.
        active, merged : (a,), the first of int
            Spread metrics that differ, the reserve first, and the weight of each
            with its equals.
    n, m, tags : int
        Nodes in view, instances that may move, exclusion tags.
    force : bool
        Skip the checks that protect comfort only.
    """

    def __init__(self, arrays, n, m, tags, force):
        self.n, self.m, self.tags, self.force = n, m, tags, force
        self.held = list(arrays)
        self.rows, self.insts = self.doubles(arrays[0]), self.doubles(arrays[1])
        self.peers, self.tagged = self.doubles(arrays[2]), self.doubles(arrays[3])
        self.taglist, self.active = self.integers(arrays[4]), self.integers(arrays[5])
        self.merged, self.actives = self.doubles(arrays[6]), len(arrays[5])
        self.x, self.sums = self.space(n * col.K), self.space(col.K)
        self.variances = self.space(col.K)
        self.twice_x, self.scales = self.space(n * col.K), self.space(n * col.K)
        self.level_s, self.level_v = self.space(col.K), self.space(col.K)
        self.here = 0.0

    def doubles(self, values: cython.double[::1]):
        """Return where an array starts; the array itself when not compiled."""
        return cython.address(values[0]) if cython.compiled else values

    def integers(self, values: cython.int[::1]):
        """Return where an array of integers starts, likewise."""
        return cython.address(values[0]) if cython.compiled else values

    def space(self, size):
        """Return room for some numbers, all 0, which lives as long as this does."""
        made = array("d", bytes(8 * max(1, size)))
        self.held.append(made)
        return self.doubles(made)

    def home(self, i):
        """Return where an instance runs."""
        return cython.cast(cython.int, self.insts[i * col.IW + col.I_P])

    def second(self, i):
        """Return where an instance has its second copy, -1 for nowhere."""
        return cython.cast(cython.int, self.insts[i * col.IW + col.I_S])

    def verbs(self, i):
        """Return the verbs that an instance may use, one bit each."""
        return cython.cast(cython.int, self.insts[i * col.IW + col.I_VERBS])

    def first_tag(self, i):
        """Return where the tags of an instance start in the list."""
        return cython.cast(cython.int, self.insts[i * col.IW + col.I_TAG])

    def last_tag(self, i):
        """Return where they end."""
        a = i * col.IW
        return cython.cast(
            cython.int, self.insts[a + col.I_TAG] + self.insts[a + col.I_TAGS]
        )

    def prepare(self, fixed):
        """Compute values, sums and variances of the rows.

        Parameters
        ----------
        fixed
            Sums that are counted, not spread: conflicts, instances on offline
            nodes, primaries there, locations, domains.
        """
        self.conflicts, self.off_all, self.off_pri, self.apart, self.domains = fixed
        self.base = 2.0 * self.conflicts + 4.0 * self.off_all + 16.0 * self.off_pri
        self.base += self.apart + self.domains
        self.measure_all()

    def reset(self, fixed):
        """Take rows as they were put back; their sums are computed when asked for."""
        self.conflicts, self.off_all, self.off_pri, self.apart, self.domains = fixed
        self.dirty = True

    def measure_all(self):
        """Compute values, sums and variances."""
        self.n1, self.kept, self.online, self.dirty = 0.0, 0.0, 0.0, False
        for j in range(self.n):
            self.measure(j, self.x, j * col.K)
            if self.rows[j * col.W + col.OFFLINE] == 0.0:
                self.online += 1.0
                self.n1 += self.unsafe(j)
                self.kept += self.x[j * col.K + col.X_KEPT]
        self.shrink = 1.0 / (self.online * self.online)
        for k in range(col.K):
            self.spread(k)
        for j in range(self.n):
            self.scale(j)
        for k in range(self.actives):
            self.level_s[k] = 2.0 * self.sums[self.active[k]]
            self.level_v[k] = self.variances[self.active[k]]

    def scale(self, j):
        """Note of each active metric twice its value, and what one unit changes.

        A node that is offline counts for nothing, so nothing changes there.
        """
        o = j * col.K
        r = self.rows
        w = j * col.W
        for a in range(self.actives):
            k = self.active[a]
            self.twice_x[o + a] = 2.0 * self.x[o + k]
            self.scales[o + a] = 1.0
            if r[w + col.OFFLINE] != 0.0:
                self.scales[o + a] = 0.0
            elif k == col.X_MEM or k == col.X_KEPT or k == col.X_MEM_ALL:
                self.scales[o + a] = 1.0 / r[w + col.MEM]
            elif k == col.X_DISK or k == col.X_DISK_ALL:
                self.scales[o + a] = (
                    1.0 / r[w + col.DISKS] if r[w + col.DISKS] != 0.0 else 0.0
                )
            elif k == col.X_CPU or k == col.X_CPU_ALL:
                self.scales[o + a] = 1.0 / (r[w + col.CPUS] * r[w + col.SPEED])
            elif k == col.X_SPINDLES or k == col.X_SPINDLES_ALL:
                self.scales[o + a] = 1.0 / r[w + col.SPINDLE_LIMIT]

    def spread(self, k):
        """Compute sum and variance of one metric."""
        s = 0.0
        v = 0.0
        for j in range(self.n):
            if self.rows[j * col.W + col.OFFLINE] == 0.0:
                s += self.x[j * col.K + k]
        for j in range(self.n):
            if self.rows[j * col.W + col.OFFLINE] == 0.0:
                d = self.x[j * col.K + k] - s / self.online
                v += d * d
        self.sums[k], self.variances[k] = s, v / self.online

    def unsafe(self, j):
        """Return how many instances sit on a node that fails N+1."""
        o = j * col.W
        if self.rows[o + col.UNSAFE] != 0.0:
            return self.rows[o + col.MAINS] + self.rows[o + col.COPIES]
        return 0.0

    def measure(self, j, into, at):
        """Write the spread metrics of a row."""
        o = j * col.W
        r = self.rows
        mem = r[o + col.MEM]
        into[at + col.X_MEM] = r[o + col.FREE] / mem
        into[at + col.X_DISK] = (
            r[o + col.DISK] / r[o + col.DISKS] if r[o + col.DISKS] != 0.0 else 1.0
        )
        into[at + col.X_KEPT] = r[o + col.KEPT] / mem
        into[at + col.X_CPU] = (r[o + col.CPU] / r[o + col.CPUS]) / r[o + col.SPEED]
        into[at + col.X_LOAD] = r[o + col.LOAD]
        into[at + col.X_LOAD + 1] = r[o + col.LOAD + 1]
        into[at + col.X_LOAD + 2] = r[o + col.LOAD + 2]
        into[at + col.X_LOAD + 3] = r[o + col.LOAD + 3]
        into[at + col.X_SPINDLES] = r[o + col.SPINDLES] / r[o + col.SPINDLE_LIMIT]
        into[at + col.X_MEM_ALL] = r[o + col.FREE_ALL] / mem
        into[at + col.X_DISK_ALL] = (
            r[o + col.DISK_ALL] / r[o + col.DISKS] if r[o + col.DISKS] != 0.0 else 1.0
        )
        into[at + col.X_CPU_ALL] = (r[o + col.CPU_ALL] / r[o + col.CPUS]) / r[
            o + col.SPEED
        ]
        into[at + col.X_SPINDLES_ALL] = (
            r[o + col.SPINDLES_ALL] / r[o + col.SPINDLE_LIMIT]
        )

    def copy(self, src, dst):
        """Copy a row."""
        for c in range(col.W):
            self.rows[dst * col.W + c] = self.rows[src * col.W + c]

    def drop_primary(self, i, row):
        """Take an instance off a row it runs on."""
        o = row * col.W
        a = i * col.IW
        r = self.rows
        t = self.insts
        r[o + col.FREE] += t[a + col.I_RUNS]
        r[o + col.UNSAFE] = 1.0 if r[o + col.FREE] <= r[o + col.KEPT] else 0.0
        r[o + col.CPU] -= t[a + col.I_CPU]
        r[o + col.CPU_ALL] -= t[a + col.I_CPU]
        r[o + col.FREE_ALL] += t[a + col.I_MEM]
        r[o + col.LOAD] -= t[a + col.I_LOAD]
        r[o + col.LOAD + 1] -= t[a + col.I_LOAD + 1]
        r[o + col.LOAD + 2] -= t[a + col.I_LOAD + 2]
        r[o + col.LOAD + 3] -= t[a + col.I_LOAD + 3]
        r[o + col.MAINS] -= 1.0
        self.give(a, o)

    def give(self, a, o):
        """Give back the disk and spindles of an instance."""
        if self.insts[a + col.I_LOCAL] != 0.0:
            self.rows[o + col.DISK] += self.insts[a + col.I_DISK]
            self.rows[o + col.DISK_ALL] += self.insts[a + col.I_DISK]
            self.rows[o + col.SPINDLES] -= self.insts[a + col.I_SPINDLES]
            self.rows[o + col.SPINDLES_ALL] -= self.insts[a + col.I_SPINDLES]

    def take(self, a, o):
        """Take the disk and spindles of an instance."""
        if self.insts[a + col.I_LOCAL] != 0.0:
            self.rows[o + col.DISK] -= self.insts[a + col.I_DISK]
            self.rows[o + col.DISK_ALL] -= self.insts[a + col.I_DISK]
            self.rows[o + col.SPINDLES] += self.insts[a + col.I_SPINDLES]
            self.rows[o + col.SPINDLES_ALL] += self.insts[a + col.I_SPINDLES]

    def drop_secondary(self, i, row, kept):
        """Take the second copy off a row; `kept` is the reserve without it."""
        o = row * col.W
        a = i * col.IW
        self.rows[o + col.KEPT] = kept
        self.rows[o + col.UNSAFE] = 1.0 if self.rows[o + col.FREE] <= kept else 0.0
        self.rows[o + col.LOAD + 2] -= self.insts[a + col.I_LOAD + 2]
        self.rows[o + col.COPIES] -= 1.0
        self.give(a, o)

    def add_primary(self, i, row, node, force):
        """Run an instance on a row; say whether that is allowed."""
        o = row * col.W
        a = i * col.IW
        r = self.rows
        t = self.insts
        failed = r[o + col.UNSAFE]
        r[o + col.FREE] -= t[a + col.I_RUNS]
        r[o + col.UNSAFE] = 1.0 if r[o + col.FREE] <= r[o + col.KEPT] else 0.0
        r[o + col.CPU] += t[a + col.I_CPU]
        r[o + col.CPU_ALL] += t[a + col.I_CPU]
        r[o + col.FREE_ALL] -= t[a + col.I_MEM]
        r[o + col.LOAD] += t[a + col.I_LOAD]
        r[o + col.LOAD + 1] += t[a + col.I_LOAD + 1]
        r[o + col.LOAD + 2] += t[a + col.I_LOAD + 2]
        r[o + col.LOAD + 3] += t[a + col.I_LOAD + 3]
        r[o + col.MAINS] += 1.0
        self.take(a, o)
        if r[o + col.FREE] <= 0.0:
            return False
        if t[a + col.I_LOCAL] != 0.0 and r[o + col.DISK] <= 0.0:
            return False
        if force:
            return True
        if r[o + col.UNSAFE] != 0.0 and failed == 0.0:
            return False
        if r[o + col.RATIO] >= 0.0 and (
            r[o + col.RATIO] < r[o + col.CPU] / r[o + col.CPUS]
            or r[o + col.RATIO] < r[o + col.CPU_ALL] / r[o + col.CPUS]
        ):
            return False
        if r[o + col.FREE_ALL] <= 0.0:
            return False
        if t[a + col.I_LOCAL] != 0.0 and not self.has_disk(o):
            return False
        return self.clashes(i, node) == 0

    def has_disk(self, o):
        """Say whether floors and spindle limits are kept."""
        r = self.rows
        return (
            r[o + col.DISK] >= r[o + col.FLOOR]
            and r[o + col.SPINDLES] <= r[o + col.SPINDLE_LIMIT]
            and r[o + col.DISK_ALL] > 0.0
            and r[o + col.DISK_ALL] >= r[o + col.FLOOR]
            and r[o + col.SPINDLES_ALL] <= r[o + col.SPINDLE_LIMIT]
        )

    def clashes(self, i, node):
        """Return how many exclusion tags of an instance a node has already."""
        found = 0
        for c in range(self.first_tag(i), self.last_tag(i)):
            if self.tagged[node * self.tags + self.taglist[c]] > 0.0:
                found += 1
        return found

    def unclashes(self, i, node):
        """Return how many clashes end when an instance leaves a node."""
        found = 0
        for c in range(self.first_tag(i), self.last_tag(i)):
            if self.tagged[node * self.tags + self.taglist[c]] > 1.0:
                found += 1
        return found

    def add_secondary(self, i, row, peer, force, there):
        """Keep the second copy on a row; `peer` is kept for its primary already."""
        o = row * col.W
        a = i * col.IW
        r = self.rows
        t = self.insts
        failed = r[o + col.UNSAFE]
        r[o + col.KEPT] = max(r[o + col.KEPT], peer + t[a + col.I_KEEPS])
        r[o + col.UNSAFE] = 1.0 if r[o + col.FREE] <= r[o + col.KEPT] else 0.0
        r[o + col.LOAD + 2] += t[a + col.I_LOAD + 2]
        r[o + col.COPIES] += 1.0
        self.take(a, o)
        if not there and r[o + col.DISK] <= 0.0:
            return False
        if force:
            return True
        if (
            t[a + col.I_KEEPS] >= r[o + col.FREE]
            or t[a + col.I_KEEPS] >= r[o + col.FREE_ALL]
        ):
            return False
        if r[o + col.UNSAFE] != 0.0 and failed == 0.0:
            return False
        return self.has_disk(o)

    def reserve_without(self, i):
        """Return what the secondary keeps when the instance is gone."""
        a = i * col.IW
        p = self.home(i)
        s = self.second(i)
        before = self.peers[s * self.n + p]
        top = before - self.insts[a + col.I_KEEPS]
        if before < self.rows[s * col.W + col.KEPT]:
            return self.rows[s * col.W + col.KEPT]
        top = max(top, 0.0)
        for j in range(self.n):
            if j != p and self.peers[s * self.n + j] > top:
                top = self.peers[s * self.n + j]
        return top

    def reserve(self, i):
        """Compute the reserve of the secondary without the instance."""
        self.here = (
            self.reserve_without(i) if self.insts[i * col.IW + col.I_S] >= 0.0 else 0.0
        )

    def mark(self, i, node, by):
        """Count the exclusion tags of an instance on a node."""
        for c in range(self.first_tag(i), self.last_tag(i)):
            self.tagged[node * self.tags + self.taglist[c]] += by

    def constant(self):
        """Return the part of the score that is no spread."""
        return self.base + self.n1 + 0.25 * self.kept
