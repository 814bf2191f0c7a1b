# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""The score of rows: `moorage.htools.metrics` once more, with sums that are kept.

What a node's values are, their table says. They are followed by the free share of each
storage unit that is part of the score; the mean of their spreads stands in for the
metrics of disk.
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
        self.level_v = self.tables.space(k)
        self.measured = self.tables.space(self.tables.metrics)

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
        self.n1, self.online, self.dirty = 0.0, 0.0, False
        for j in range(self.tables.n):
            self.measure(j, j, self.x, j * self.tables.k)
            if not self.tables.is_off(j):
                self.online += 1.0
                self.n1 += self.rows.unsafe(j)
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
        u = k - self.tables.shared
        return u < 0 or self.tables.seen[j * self.tables.units + u] != 0.0

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
        """Return what one MiB, processor or spindle changes in a value of a node."""
        if k >= self.tables.shared:
            u = j * self.tables.units + k - self.tables.shared
            free = self.tables.kinds[u] == col.COUNTED and self.tables.totals[u] != 0.0
            return 1.0 / self.tables.totals[u] if free else 0.0
        found, r = 1.0, self.tables.row(j)
        for c in range(col.S_PER, col.S_BY + 1):
            per = self.tables.share(k)[c]
            if per >= 0:
                found = found / r[per] if r[per] != 0.0 else 0.0
        return found

    def measure(self, row, node, into, at):
        """Write the values of a row, which is a node's as it is or as it would be."""
        # The compiler keeps locals in registers, and must read fields again.
        r, shares, count = self.tables.row(row), self.tables.shares, self.tables.shared
        for k in range(count):
            x = r[shares[k * col.SW + col.S_OF]]
            per, by = shares[k * col.SW + col.S_PER], shares[k * col.SW + col.S_BY]
            if per >= 0:
                x = x / r[per] if r[per] != 0.0 else 1.0
            if by >= 0:
                x = x / r[by] if r[by] != 0.0 else 1.0
            into[at + k] = x
        for u in range(self.tables.counted):
            total = self.tables.totals[node * self.tables.units + u]
            o = at + self.tables.shared + u
            into[o] = 1.0
            if self.tables.seen[node * self.tables.units + u] == 0.0:
                into[o] = 0.0
            elif total != 0.0:
                into[o] = self.tables.stock[row * self.tables.units + u] / total

    def weigh_counts(self):
        """Weigh what is counted as it is, but for N+1."""
        self.as_is()
        self.base = self.counted(0.0)

    def counted(self, unsafe):
        """Return the part of a changed score that is counted."""
        w = self.tables.weights
        found = w[col.G_TAGS] * self.c_tags + w[col.G_OFF_ALL] * self.c_all
        found += w[col.G_OFF_PRI] * self.c_pri
        found += w[col.G_APART] * self.c_apart + w[col.G_DOMAINS] * self.c_domains
        return found + w[col.G_UNSAFE] * unsafe

    def constant(self):
        """Return the part of the score that is no spread."""
        found = self.base + self.tables.weights[col.G_UNSAFE] * self.n1
        for a in range(self.tables.actives):
            found += self.tables.adding[a] * 0.5 * self.level_s[a]
        return found

    def exactly(self, p, s, t, unsafe):
        """Return the score of the changed rows, in the order that defines it."""
        for k in range(self.tables.shared):
            share = self.tables.share(k)
            if share[col.S_SPREAD] >= 0:
                self.measured[share[col.S_SPREAD]] = self.spread_of(k, p, s, t)
            if share[col.S_SUM] >= 0:
                self.measured[share[col.S_SUM]] = self.added(k, p, s, t)
        return self.weigh(unsafe)

    def weigh(self, unsafe):
        """Return the sum of the weighed metrics; spreads and sums were put before."""
        m, w, count, score = (
            self.measured,
            self.tables.weights,
            self.tables.metrics,
            0.0,
        )
        m[col.G_UNSAFE] = unsafe
        m[col.G_OFF_ALL], m[col.G_OFF_PRI] = self.c_all, self.c_pri
        m[col.G_TAGS] = self.c_tags
        m[col.G_APART], m[col.G_DOMAINS] = self.c_apart, self.c_domains
        for g in range(count):
            score += m[g] * w[g]
        return score

    def spread_of(self, k, p, s, t):
        """Return a spread after the move, or the mean over units in its place."""
        if self.tables.counted == 0 or self.tables.share(k)[col.S_UNITS] == 0:
            return self.deviation(k, p, s, t)
        found = 0.0
        for u in range(self.tables.counted):
            found += self.deviation(self.tables.shared + u, p, s, t)
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
