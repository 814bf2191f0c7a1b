# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""Getting one instance off both its nodes, in several moves."""

import cython

from moorage.htools.kernel import columns as col
from moorage.htools.kernel.search import Search


class Leaving(Search):
    """Rows on which moves are made, and taken back."""

    def __init__(self, arrays, sizes, force):
        super().__init__(arrays, sizes, force)
        # The nodes of a walk, what is counted, their peers, and their rows and units.
        self.span = col.W + self.units
        self.trail = self.space(3 + 6 + 9 + 3 * self.span)
        self.gain_d, self.gain_q = self.space(self.k), self.space(self.k)

    def new_pair(self, i, places):
        """Return the best new pair of nodes as (score, primary, secondary), or None.

        The secondary is replaced by the new primary, the instance fails over to
        it, and the other node is replaced, which must be among its verbs; off an
        offline node it fails over first. Each step must be allowed. Of equals the
        last pair is the best.
        """
        best = None
        least: cython.double = col.HUGE
        p: cython.int
        s: cython.int
        self.best, self.above = col.HUGE, -col.HUGE
        if self.dirty:
            self.measure_all()
        self.start_n1, self.start_kept = self.n1, self.kept
        for primary in places:
            p = primary
            self.leave_trail(i, p)
            self.n1 = self.start_n1 - self.unsafe_stops()
            if self.walk(i, p):
                self.n1 += self.unsafe_stops()
                self.measure_stops()
                self.reserve(i)
                self.leave(i)
                self.count = 0
                for secondary in places:
                    s = secondary
                    if s != p:
                        self.target(i, s)
                s = self.nearest(i)
                if s >= 0 and self.best_exact <= least:
                    least = self.best_exact
                    best = (least, primary, s)
            self.walk_back(i)
        self.dirty = True
        return best

    def nearest(self, i):
        """Return the last of the best targets of r among those kept, -1 for none."""
        found = -1
        self.best_exact = col.HUGE
        for c in range(self.count):
            if self.near[4 * c + 3] < self.best + col.NEAR:
                t = cython.cast(cython.int, self.near[4 * c + 2])
                score = self.change(i, col.R, t, True)
                if score <= self.best_exact:
                    self.best_exact = score
                    found = t
        return found

    def measure_stops(self):
        """Compute values and levels, where only the nodes of a walk have changed."""
        self.base = 2.0 * self.conflicts + 4.0 * self.off_all + 16.0 * self.off_pri
        self.base += self.apart + self.domains
        for a in range(self.actives):
            self.gain_d[a], self.gain_q[a] = 0.0, 0.0
        self.gain(-1.0)
        self.measure_trail()
        self.gain(1.0)
        # The reserve is the first of the metrics that differ.
        self.kept = self.start_kept + self.gain_d[0]
        for a in range(self.actives):
            k, d, n = self.active[a], self.gain_d[a], self.level_n[a]
            v = n * self.gain_q[a] - d * (2.0 * self.sums[k] + d)
            self.level_s[a] = 2.0 * (self.sums[k] + d)
            self.level_v[a] = max(0.0, self.variances[k] + v * self.shrinks[a])

    def gain(self, sign):
        """Add the values of the nodes of a walk, and their squares, to what changed."""
        for c in range(3):
            j = self.stop(c)
            for a in range(self.actives):
                if self.counts_in(j, self.active[a]):
                    x = self.x[j * self.k + self.active[a]]
                    self.gain_d[a] += sign * x
                    self.gain_q[a] += sign * x * x

    def unsafe_stops(self):
        """Return how many instances sit on those that are online and fail N+1."""
        found = 0.0
        for c in range(3):
            if not self.is_off(self.stop(c)):
                found += self.unsafe(self.stop(c))
        return found

    def measure_trail(self):
        """Compute the values of the nodes of a walk."""
        for c in range(3):
            j = self.stop(c)
            self.measure(j, j, self.x, j * self.k)
            self.scale(j)

    def walk(self, i, p):
        """Bring an instance to a new primary; say whether all steps are allowed."""
        if self.is_off(self.home(i)) and not self.step(i, col.F, -1):
            return False
        return self.step(i, col.R, p) and self.step(i, col.F, -1)

    def step(self, i, verb, t):
        """Make a move if it is allowed; say whether it is."""
        one, p, s = self.inst(i), self.home(i), self.second(i)
        self.reserve(i)
        if not self.run(i, verb, t):
            return False
        self.commit(i, verb, t)
        one[col.I_LOCATION] = self.shared(i, verb, p, s, t)
        if verb == col.F:
            one[col.I_P], one[col.I_S] = s, p
        else:
            one[col.I_S] = t
        return True

    def commit(self, i, verb, t):
        """Make the scratch rows the real ones, after f, fa or r."""
        n, p, s = self.n, self.home(i), self.second(i)
        keeps = self.inst(i)[col.I_KEEPS] * self.inst(i)[col.I_REAL]
        self.count_fixed(i, verb, p, -1 if verb == col.FA else s, t)
        self.take_counts()
        if verb != col.R:
            self.mark(i, p, -1.0)
            self.mark(i, s if verb == col.F else t, 1.0)
        self.copy(n, p)
        if verb != col.F:
            self.copy(n + 2, t)
        if verb != col.FA:
            self.copy(n + 1, s)
            self.peers[s * n + p] -= keeps
        if verb == col.F:
            self.peers[p * n + s] += keeps
        elif verb == col.R:
            self.peers[t * n + p] += keeps
        self.dirty = True

    def leave_trail(self, i, p):
        """Note how things are on the three nodes that a walk changes."""
        trail = self.trail
        trail[0], trail[1], trail[2] = self.home(i), self.second(i), p
        trail[3], trail[4], trail[5] = self.conflicts, self.off_all, self.off_pri
        trail[6], trail[7] = self.apart, self.domains
        trail[8] = self.inst(i)[col.I_LOCATION]
        for c in range(3):
            for d in range(3):
                trail[9 + 3 * c + d] = self.peers[self.cell(c, d)]
            o, j = 18 + c * self.span, self.stop(c)
            for d in range(col.W):
                trail[o + d] = self.row(j)[d]
            for u in range(self.units):
                trail[o + col.W + u] = self.stock[j * self.units + u]

    def walk_back(self, i):
        """Put back what a walk changed, but for the sums."""
        one, trail = self.inst(i), self.trail
        if one[col.I_P] != trail[0]:
            self.mark(i, self.home(i), -1.0)
            self.mark(i, self.stop(0), 1.0)
        one[col.I_P], one[col.I_S] = trail[0], trail[1]
        self.conflicts, self.off_all, self.off_pri = trail[3], trail[4], trail[5]
        self.apart, self.domains = trail[6], trail[7]
        one[col.I_LOCATION] = trail[8]
        for c in range(3):
            for d in range(3):
                self.peers[self.cell(c, d)] = trail[9 + 3 * c + d]
            o, j = 18 + c * self.span, self.stop(c)
            for d in range(col.W):
                self.row(j)[d] = trail[o + d]
            for u in range(self.units):
                self.stock[j * self.units + u] = trail[o + col.W + u]
        self.measure_trail()

    def stop(self, c):
        """Return a node of a walk: the old primary, the old secondary, the new one."""
        return cython.cast(cython.int, self.trail[c])

    def cell(self, c, d):
        """Return where the peers of two of them stand."""
        return self.stop(c) * self.n + self.stop(d)
