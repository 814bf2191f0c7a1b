# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""The score of rows: `moorage.htools.metrics` once more, with sums that are kept.

A node's values of the spread metrics are followed by the free share of each storage
unit that is part of the score; the mean of their spreads stands in for the metrics of
disk.
"""

from cython.cimports.libc.math import sqrt

from moorage.htools.kernel import columns as col


class Scores:
    """Rows with their values, sums and variances."""

    def __init__(self, tables, rows):
        self.tables = tables
        self.rows = rows
        n, k = self.tables.n, self.tables.k
        self.x, self.new = self.tables.space(n * k), self.tables.space(3 * k)
        self.sums, self.variances = self.tables.space(k), self.tables.space(k)
        self.counts, self.shrinks = self.tables.space(k), self.tables.space(k)
        self.twice_x, self.scales = self.tables.space(n * k), self.tables.space(n * k)
        self.level_n, self.level_s = self.tables.space(k), self.tables.space(k)
        self.level_v, self.exclusive = self.tables.space(k), False
        self.measured = self.tables.space(col.G)

    def prepare(self, fixed):
        """Compute values, sums and variances of the rows.

        Parameters
        ----------
        fixed
            Sums that are counted, not spread: conflicts, instances on offline
            nodes, primaries there, locations, domains.
        """
        self.reset(fixed)
        self.weigh_counts()
        self.measure_all()

    def reset(self, fixed):
        """Take rows as they were put back; their sums are computed when asked for."""
        self.conflicts, self.off_all, self.off_pri, self.apart, self.domains = fixed
        self.dirty = True

    def as_is(self):
        """Start the counted parts of a changed score from what they are."""
        self.c_tags, self.c_all, self.c_pri = self.conflicts, self.off_all, self.off_pri
        self.c_apart, self.c_domains = self.apart, self.domains

    def take_counts(self):
        """Make the counted parts of a changed score the real ones."""
        self.conflicts, self.off_all, self.off_pri = self.c_tags, self.c_all, self.c_pri
        self.apart, self.domains = self.c_apart, self.c_domains

    def measure_all(self):
        """Compute values, sums and variances."""
        self.n1, self.kept, self.online, self.dirty = 0.0, 0.0, 0.0, False
        for j in range(self.tables.n):
            self.measure(j, j, self.x, j * self.tables.k)
            if not self.tables.is_off(j):
                self.online += 1.0
                self.exclusive = self.tables.row(j)[col.EXCLUSIVE] != 0.0
                self.n1 += self.rows.unsafe(j)
                self.kept += self.x[j * self.tables.k + col.X_KEPT]
        self.shrink = 1.0 / (self.online * self.online)
        for k in range(self.tables.k):
            self.spread(k)
        for j in range(self.tables.n):
            self.scale(j)
        for a in range(self.tables.actives):
            k = self.tables.active[a]
            self.level_s[a] = 2.0 * self.sums[k]
            self.level_v[a] = self.variances[k]
            self.level_n[a] = self.counts[k]
            self.shrinks[a] = self.shrink
            if self.counts[k] > 0.0:
                self.shrinks[a] = 1.0 / (self.counts[k] * self.counts[k])

    def counts_in(self, j, k):
        """Say whether a node is part of a spread."""
        if self.tables.is_off(j):
            return False
        return k < col.K or self.tables.seen[j * self.tables.units + k - col.K] != 0.0

    def spread(self, k):
        """Compute count, sum and variance of one metric."""
        n, s, v = 0.0, 0.0, 0.0
        for j in range(self.tables.n):
            if self.counts_in(j, k):
                n += 1.0
                s += self.x[j * self.tables.k + k]
        for j in range(self.tables.n):
            if self.counts_in(j, k):
                d = self.x[j * self.tables.k + k] - s / n
                v += d * d
        self.counts[k], self.sums[k] = n, s
        self.variances[k] = v / n if n > 0.0 else 0.0

    def scale(self, j):
        """Note of each active metric twice its value, and what one unit changes.

        A node that is offline counts for nothing, so nothing changes there.
        """
        for a in range(self.tables.actives):
            self.twice_x[j * self.tables.k + a] = (
                2.0 * self.x[j * self.tables.k + self.tables.active[a]]
            )
            self.scales[j * self.tables.k + a] = 0.0
            if self.counts_in(j, self.tables.active[a]):
                self.scales[j * self.tables.k + a] = self.per_unit(
                    j, self.tables.active[a]
                )

    def per_unit(self, j, k):
        """Return what one MiB, processor or spindle changes in a metric of a node."""
        r = self.tables.row(j)
        if k >= col.K:
            u = j * self.tables.units + k - col.K
            free = self.tables.kinds[u] == col.COUNTED and self.tables.totals[u] != 0.0
            return 1.0 / self.tables.totals[u] if free else 0.0
        if k == col.X_DISK or k == col.X_DISK_ALL:
            whole = r[col.WHOLES] if r[col.EXCLUSIVE] != 0.0 else r[col.DISKS]
            return 1.0 / whole if whole != 0.0 else 0.0
        if k == col.X_CPU or k == col.X_CPU_ALL:
            return 1.0 / (r[col.CPUS] * r[col.SPEED])
        if k == col.X_SPINDLES or k == col.X_SPINDLES_ALL:
            exclusive = r[col.EXCLUSIVE] != 0.0
            return 0.0 if exclusive else 1.0 / r[col.SPINDLE_LIMIT]
        return 1.0 if col.X_LOAD <= k <= col.X_LOAD + 3 else 1.0 / r[col.MEM]

    def measure(self, row, node, into, at):
        """Write the values of a row, which is a node's as it is or as it would be."""
        r = self.tables.row(row)
        mem, cpus, limit = r[col.MEM], r[col.CPUS], r[col.SPINDLE_LIMIT]
        into[at + col.X_MEM] = r[col.FREE] / mem
        into[at + col.X_DISK] = self.share(r, r[col.WHOLE], r[col.DISK])
        into[at + col.X_KEPT] = r[col.KEPT] / mem
        into[at + col.X_CPU] = (r[col.CPU] / cpus) / r[col.SPEED]
        for c in range(4):
            into[at + col.X_LOAD + c] = r[col.LOAD + c]
        into[at + col.X_SPINDLES] = r[col.SPINDLES] / limit
        into[at + col.X_MEM_ALL] = r[col.FREE_ALL] / mem
        into[at + col.X_DISK_ALL] = self.share(r, r[col.WHOLE_ALL], r[col.DISK_ALL])
        into[at + col.X_CPU_ALL] = (r[col.CPU_ALL] / cpus) / r[col.SPEED]
        into[at + col.X_SPINDLES_ALL] = r[col.SPINDLES_ALL] / limit
        for u in range(self.tables.counted):
            total = self.tables.totals[node * self.tables.units + u]
            into[at + col.K + u] = 1.0
            if self.tables.seen[node * self.tables.units + u] == 0.0:
                into[at + col.K + u] = 0.0
            elif total != 0.0:
                into[at + col.K + u] = (
                    self.tables.stock[row * self.tables.units + u] / total
                )

    def share(self, r, spindles, space):
        """Return the free share of disk, of spindles under exclusive storage."""
        if r[col.EXCLUSIVE] != 0.0:
            return spindles / r[col.WHOLES] if r[col.WHOLES] != 0.0 else 1.0
        return space / r[col.DISKS] if r[col.DISKS] != 0.0 else 1.0

    def weigh_counts(self):
        """Weigh what is counted as it is, but for N+1 and the reserve."""
        self.as_is()
        self.base = self.counted(0.0, 0.0)

    def counted(self, unsafe, kept):
        """Return the part of a changed score that is no spread."""
        w = self.tables.weights
        found = w[col.G_TAGS] * self.c_tags + w[col.G_OFF_ALL] * self.c_all
        found += w[col.G_OFF_PRI] * self.c_pri
        found += w[col.G_APART] * self.c_apart + w[col.G_DOMAINS] * self.c_domains
        return found + w[col.G_UNSAFE] * unsafe + w[col.G_RESERVED] * kept

    def constant(self):
        """Return the part of the score that is no spread."""
        w = self.tables.weights
        return self.base + w[col.G_UNSAFE] * self.n1 + w[col.G_RESERVED] * self.kept

    def exactly(self, p, s, t, unsafe):
        """Return the score of the changed rows, in the order that defines it."""
        for k in range(col.K):
            if k == col.X_DISK or k == col.X_DISK_ALL:
                self.put(k, self.disks(k, p, s, t))
            else:
                self.put(k, self.deviation(k, p, s, t))
        return self.weigh(unsafe, self.added(col.X_KEPT, p, s, t))

    def put(self, k, value):
        """Note a spread among the metrics to be weighed."""
        self.measured[self.tables.spreads[k]] = value

    def weigh(self, unsafe, kept):
        """Return the sum of the weighed metrics; the spreads were put before."""
        m, score = self.measured, 0.0
        m[col.G_UNSAFE], m[col.G_RESERVED] = unsafe, kept
        m[col.G_OFF_ALL], m[col.G_OFF_PRI] = self.c_all, self.c_pri
        m[col.G_TAGS] = self.c_tags
        m[col.G_APART], m[col.G_DOMAINS] = self.c_apart, self.c_domains
        for g in range(col.G):
            score += m[g] * self.tables.weights[g]
        return score

    def disks(self, k, p, s, t):
        """Return a metric of disk, or the mean over storage units in its place."""
        if self.tables.counted == 0:
            return self.deviation(k, p, s, t)
        found = 0.0
        for u in range(self.tables.counted):
            found += self.deviation(col.K + u, p, s, t)
        return found / self.tables.counted

    def value(self, j, k, p, s, t):
        """Return a metric of a node after the move on the scratch rows."""
        if j == p:
            return self.new[k]
        if j == s:
            return self.new[self.tables.k + k]
        if j == t:
            return self.new[2 * self.tables.k + k]
        return self.x[j * self.tables.k + k]

    def added(self, k, p, s, t):
        """Return the sum of a metric after the move."""
        found = 0.0
        for j in range(self.tables.n):
            if self.counts_in(j, k):
                found += self.value(j, k, p, s, t)
        return found

    def deviation(self, k, p, s, t):
        """Return the spread of a metric after the move."""
        if self.counts[k] == 0.0:
            return 0.0
        found = 0.0
        mean = self.added(k, p, s, t) / self.counts[k]
        for j in range(self.tables.n):
            if self.counts_in(j, k):
                off = self.value(j, k, p, s, t) - mean
                found += off * off
        return sqrt(found / self.counts[k])

    def current(self):
        """Return the score of the rows as they are."""
        self.as_is()
        return self.exactly(-1, -1, -1, self.n1)
