# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""One move, done on scratch rows, and its score to the last digit."""

import cython
from cython.cimports.libc.math import sqrt

from moorage.htools.kernel import columns as col
from moorage.htools.kernel.rows import Rows


class Moves(Rows):
    """Rows on which a move can be tried.

    p, s and t, the old nodes and the target, become the rows n, n + 1 and n + 2.
    """

    def __init__(self, arrays, n, m, tags, force):
        super().__init__(arrays, n, m, tags, force)
        self.new = self.space(3 * col.K)
        self.widest, self.least = self.space(col.K), self.space(col.K)

    def run(self, i, verb, t):
        """Do a move on the scratch rows: p, s, t become rows n, n + 1, n + 2.

        Says whether the move is allowed.
        """
        n = self.n
        p = self.home(i)
        s = self.second(i)
        gone = self.rows[p * col.W + col.OFFLINE] != 0.0 or self.force
        self.copy(p, n)
        if verb == col.FA:
            self.copy(t, n + 2)
            self.drop_primary(i, n)
            return self.add_primary(i, n + 2, t, gone)
        self.copy(s, n + 1)
        if verb != col.F:
            self.copy(t, n + 2)
        self.drop_primary(i, n)
        self.drop_secondary(i, n + 1, self.here)
        if verb == col.F:
            return self.run_failover(i, p, s, gone)
        if verb == col.R or verb == col.RF:
            return self.run_replace(i, verb, t, p, s)
        return self.run_through(i, verb, t, s, gone)

    def run_failover(self, i, p, s, gone):
        n = self.n
        there = self.rows[p * col.W + col.OFFLINE] != 0.0
        if not self.add_primary(i, n + 1, s, gone):
            return False
        return self.add_secondary(i, n, self.peers[p * n + s], gone, there)

    def run_replace(self, i, verb, t, p, s):
        n = self.n
        lost = self.rows[s * col.W + col.OFFLINE] != 0.0 or self.force
        if verb == col.R:
            if not self.add_secondary(i, n + 2, self.peers[t * n + p], lost, False):
                return False
            return self.add_primary(i, n, p, True)
        if not self.add_primary(i, n + 2, t, self.force):
            return False
        return self.add_secondary(i, n, self.peers[p * n + t], lost, False)

    def run_through(self, i, verb, t, s, gone):
        """Do the moves that first fail over to the secondary."""
        n = self.n
        if not self.add_primary(i, n + 1, s, gone):
            return False
        if verb == col.FR:
            return self.add_secondary(i, n + 2, self.peers[t * n + s], gone, False)
        if not self.add_primary(i, n + 2, t, gone):
            return False
        self.drop_primary(i, n + 1)
        return self.add_secondary(i, n + 1, self.peers[s * n + t], gone, False)

    def change(self, i, verb, t, exact):
        """Return the score after a move, quickly or to the digit; HUGE if refused."""
        n = self.n
        p = self.home(i)
        s = self.second(i)
        if not self.run(i, verb, t):
            return col.HUGE
        if verb == col.F:
            t = -1
        if verb == col.FA:
            s = -1
        self.count_fixed(i, verb, p, s, t)
        unsafe = self.n1
        kept = self.kept
        for slot in range(3):
            node = p if slot == 0 else s if slot == 1 else t
            if node < 0 or self.rows[node * col.W + col.OFFLINE] != 0.0:
                continue
            self.measure(n + slot, self.new, slot * col.K)
            unsafe += self.unsafe(n + slot) - self.unsafe(node)
            kept += (
                self.new[slot * col.K + col.X_KEPT] - self.x[node * col.K + col.X_KEPT]
            )
        if exact:
            return self.exactly(p, s, t, unsafe)
        rest = unsafe + 0.25 * kept + self.apart + self.domains
        rest += 2.0 * self.c_tags + 4.0 * self.c_all + 16.0 * self.c_pri
        return self.quickly(p, s, t, rest)

    def count_fixed(self, i, verb, p, s, t):
        """Count conflicts, and instances on offline nodes, after a move."""
        home = p if verb == col.R else s if verb == col.F or verb == col.FR else t
        self.c_tags, self.c_all, self.c_pri = self.conflicts, self.off_all, self.off_pri
        if verb != col.R and self.tags > 0:
            self.c_tags += self.clashes(i, home)
            if self.rows[p * col.W + col.OFFLINE] == 0.0:
                self.c_tags -= self.unclashes(i, p)
        if self.rows[p * col.W + col.OFFLINE] != 0.0 and verb != col.R:
            self.c_pri -= 1.0
            if verb != col.F and verb != col.RF:
                self.c_all -= 1.0
        if s >= 0 and self.rows[s * col.W + col.OFFLINE] != 0.0:
            if verb == col.R or verb == col.RF:
                self.c_all -= 1.0
            elif verb != col.FRF:
                self.c_pri += 1.0

    def quickly(self, p, s, t, rest):
        """Return the score from changed sums; HUGE once it cannot win."""
        x = self.x
        new = self.new
        use_p = self.rows[p * col.W + col.OFFLINE] == 0.0
        use_s = s >= 0 and self.rows[s * col.W + col.OFFLINE] == 0.0
        for a in range(self.actives):
            k = self.active[a]
            d = 0.0
            q = 0.0
            if use_p:
                d = new[k] - x[p * col.K + k]
                q = d * (new[k] + x[p * col.K + k])
            if use_s:
                v = new[col.K + k] - x[s * col.K + k]
                d += v
                q += v * (new[col.K + k] + x[s * col.K + k])
            if t >= 0:
                v = new[2 * col.K + k] - x[t * col.K + k]
                d += v
                q += v * (new[2 * col.K + k] + x[t * col.K + k])
            v = (
                self.variances[k]
                + (self.online * q - 2.0 * self.sums[k] * d - d * d) * self.shrink
            )
            if self.widest[a] < d:
                self.widest[a] = d
            elif self.widest[a] < -d:
                self.widest[a] = -d
            if v > 0.0:
                self.least[a] = min(self.least[a], v)
                rest += self.merged[a] * sqrt(v)
            else:
                self.least[a] = 0.0
        return rest

    def exactly(self, p, s, t, unsafe):
        """Return the score of the changed rows, in the order that defines it."""
        score = 0.0
        score += self.deviation(col.X_MEM, p, s, t) * 0.5
        score += self.deviation(col.X_DISK, p, s, t) * 0.5
        score += unsafe
        score += self.deviation(col.X_KEPT, p, s, t)
        score += self.c_all * 4.0
        score += self.c_pri * 16.0
        score += self.deviation(col.X_CPU, p, s, t) * 0.5
        score += self.deviation(col.X_LOAD, p, s, t)
        score += self.deviation(col.X_LOAD + 1, p, s, t)
        score += self.deviation(col.X_LOAD + 2, p, s, t)
        score += self.deviation(col.X_LOAD + 3, p, s, t)
        score += self.c_tags * 2.0
        score += self.deviation(col.X_SPINDLES, p, s, t) * 0.5
        score += self.deviation(col.X_MEM_ALL, p, s, t) * 0.5
        score += self.deviation(col.X_DISK_ALL, p, s, t) * 0.5
        score += self.deviation(col.X_CPU_ALL, p, s, t) * 0.5
        score += self.deviation(col.X_SPINDLES_ALL, p, s, t) * 0.5
        score += self.apart
        score += self.domains
        return score + self.added(col.X_KEPT, p, s, t) * 0.25

    def value(self, j, k, p, s, t):
        """Return a metric of a node after the move on the scratch rows."""
        if j == p:
            return self.new[k]
        if j == s:
            return self.new[col.K + k]
        if j == t:
            return self.new[2 * col.K + k]
        return self.x[j * col.K + k]

    def added(self, k, p, s, t):
        """Return the sum of a metric after the move."""
        found = 0.0
        for j in range(self.n):
            if self.rows[j * col.W + col.OFFLINE] == 0.0:
                found += self.value(j, k, p, s, t)
        return found

    def deviation(self, k, p, s, t):
        """Return the spread of a metric after the move."""
        found = 0.0
        mean = self.added(k, p, s, t) / self.online
        for j in range(self.n):
            if self.rows[j * col.W + col.OFFLINE] == 0.0:
                off = self.value(j, k, p, s, t) - mean
                found += off * off
        return sqrt(found / self.online)

    def current(self):
        """Return the score of the rows as they are."""
        self.c_tags, self.c_all, self.c_pri = self.conflicts, self.off_all, self.off_pri
        return self.exactly(-1, -1, -1, self.n1)

    def tries(self, i, verb, places, least):
        """Return the score of one verb on each place; 1e300 if refused.

        Scores up to the least one, and up to `least`, are exact; the others
        are good to 1e-7 only, and above it.
        """
        found = []
        bound: cython.double = least
        score: cython.double
        self.reserve(i)
        for t in places:
            score = self.change(i, verb, t, False)
            if score < bound + col.NEAR:
                score = self.change(i, verb, t, True)
                bound = min(bound, score)
            found.append(score)
        return found
