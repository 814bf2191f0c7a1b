# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""Getting one instance off both its nodes, in several moves."""

import cython

from moorage.htools.kernel import columns as col


class Leaving:
    """Rows on which moves are made, and taken back."""

    def __init__(self, tables, rows, scores, moves, candidates, near):
        self.tables = tables
        self.rows = rows
        self.scores = scores
        self.moves = moves
        self.candidates = candidates
        self.near = near
        # The nodes of a walk, what is counted, their peers, and their rows and units.
        self.span = col.W + self.tables.units
        self.trail = self.tables.space(3 + 6 + 9 + 3 * self.span)
        self.gain_d, self.gain_q = (
            self.tables.space(self.tables.k),
            self.tables.space(self.tables.k),
        )

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
        self.near.begin(col.HUGE, -col.HUGE)
        if self.scores.dirty:
            self.scores.measure_all()
        self.start_n1 = self.scores.n1
        for primary in places:
            p = primary
            self.leave_trail(i, p)
            self.scores.n1 = self.start_n1 - self.unsafe_stops()
            if self.walk(i, p):
                self.scores.n1 += self.unsafe_stops()
                self.measure_stops()
                self.rows.reserve(i)
                self.candidates.leave(i)
                self.near.count = 0
                for secondary in places:
                    s = secondary
                    if s != p:
                        self.candidates.target(i, s)
                s = self.nearest(i)
                if s >= 0 and self.best_exact <= least:
                    least = self.best_exact
                    best = (least, primary, s)
            self.walk_back(i)
        self.scores.dirty = True
        return best

    def nearest(self, i):
        """Return the last of the best targets of r among those kept, -1 for none."""
        found = -1
        self.best_exact = col.HUGE
        for c in range(self.near.count):
            if self.near.kept[4 * c + 3] < self.near.best + col.NEAR:
                t = cython.cast(cython.int, self.near.kept[4 * c + 2])
                score = self.moves.change(i, col.R, t, True)
                if score <= self.best_exact:
                    self.best_exact = score
                    found = t
        return found

    def measure_stops(self):
        """Compute values and levels, where only the nodes of a walk have changed."""
        self.scores.weigh_counts()
        for a in range(self.tables.actives):
            self.gain_d[a], self.gain_q[a] = 0.0, 0.0
        self.gain(-1.0)
        self.measure_trail()
        self.gain(1.0)
        for a in range(self.tables.actives):
            k, d, n = self.tables.active[a], self.gain_d[a], self.scores.level_n[a]
            v = n * self.gain_q[a] - d * (2.0 * self.scores.sums[k] + d)
            self.scores.level_s[a] = 2.0 * (self.scores.sums[k] + d)
            self.scores.level_v[a] = max(
                0.0, self.scores.variances[k] + v * self.scores.shrinks[a]
            )

    def gain(self, sign):
        """Add the values of the nodes of a walk, and their squares, to what changed."""
        for c in range(3):
            j = self.stop(c)
            for a in range(self.tables.actives):
                if self.scores.counts_in(j, self.tables.active[a]):
                    x = self.scores.x[j * self.tables.k + self.tables.active[a]]
                    self.gain_d[a] += sign * x
                    self.gain_q[a] += sign * x * x

    def unsafe_stops(self):
        """Return how many instances sit on those that are online and fail N+1."""
        found = 0.0
        for c in range(3):
            if not self.tables.is_off(self.stop(c)):
                found += self.rows.unsafe(self.stop(c))
        return found

    def measure_trail(self):
        """Compute the values of the nodes of a walk."""
        for c in range(3):
            j = self.stop(c)
            self.scores.measure(j, j, self.scores.x, j * self.tables.k)
            self.scores.scale(j)

    def walk(self, i, p):
        """Bring an instance to a new primary; say whether all steps are allowed."""
        if self.tables.is_off(self.tables.home(i)) and not self.step(i, col.F, -1):
            return False
        return self.step(i, col.R, p) and self.step(i, col.F, -1)

    def step(self, i, verb, t):
        """Make a move if it is allowed; say whether it is."""
        one, p, s = self.tables.inst(i), self.tables.home(i), self.tables.second(i)
        self.rows.reserve(i)
        if not self.moves.run(i, verb, t):
            return False
        self.commit(i, verb, t)
        one[col.I_LOCATION] = self.moves.shared(i, verb, p, s, t)
        if verb == col.F:
            one[col.I_P], one[col.I_S] = s, p
        else:
            one[col.I_S] = t
        return True

    def commit(self, i, verb, t):
        """Make the scratch rows the real ones, after f, fa or r."""
        n, p, s = self.tables.n, self.tables.home(i), self.tables.second(i)
        keeps = self.tables.inst(i)[col.I_KEEPS] * self.tables.inst(i)[col.I_REAL]
        self.moves.count_fixed(i, verb, p, -1 if verb == col.FA else s, t)
        self.scores.take_counts()
        if verb != col.R:
            self.tables.mark(i, p, -1.0)
            self.tables.mark(i, s if verb == col.F else t, 1.0)
        self.rows.copy(n, p)
        if verb != col.F:
            self.rows.copy(n + 2, t)
        if verb != col.FA:
            self.rows.copy(n + 1, s)
            self.tables.peers[s * n + p] -= keeps
        if verb == col.F:
            self.tables.peers[p * n + s] += keeps
        elif verb == col.R:
            self.tables.peers[t * n + p] += keeps
        self.scores.dirty = True

    def leave_trail(self, i, p):
        """Note how things are on the three nodes that a walk changes."""
        trail = self.trail
        trail[0], trail[1], trail[2] = self.tables.home(i), self.tables.second(i), p
        trail[3], trail[4], trail[5] = (
            self.scores.conflicts,
            self.scores.off_all,
            self.scores.off_pri,
        )
        trail[6], trail[7] = self.scores.apart, self.scores.domains
        trail[8] = self.tables.inst(i)[col.I_LOCATION]
        for c in range(3):
            for d in range(3):
                trail[col.T_PEERS + 3 * c + d] = self.tables.peers[self.cell(c, d)]
            o, j = col.T_ROWS + c * self.span, self.stop(c)
            for d in range(col.W):
                trail[o + d] = self.tables.row(j)[d]
            for u in range(self.tables.units):
                trail[o + col.W + u] = self.tables.stock[j * self.tables.units + u]

    def walk_back(self, i):
        """Put back what a walk changed, but for the sums."""
        one, trail = self.tables.inst(i), self.trail
        if one[col.I_P] != trail[0]:
            self.tables.mark(i, self.tables.home(i), -1.0)
            self.tables.mark(i, self.stop(0), 1.0)
        one[col.I_P], one[col.I_S] = trail[0], trail[1]
        self.scores.conflicts, self.scores.off_all, self.scores.off_pri = (
            trail[3],
            trail[4],
            trail[5],
        )
        self.scores.apart, self.scores.domains = trail[6], trail[7]
        one[col.I_LOCATION] = trail[8]
        for c in range(3):
            for d in range(3):
                self.tables.peers[self.cell(c, d)] = trail[col.T_PEERS + 3 * c + d]
            o, j = col.T_ROWS + c * self.span, self.stop(c)
            for d in range(col.W):
                self.tables.row(j)[d] = trail[o + d]
            for u in range(self.tables.units):
                self.tables.stock[j * self.tables.units + u] = trail[o + col.W + u]
        self.measure_trail()

    def stop(self, c):
        """Return a node of a walk: the old primary, the old secondary, the new one."""
        return cython.cast(cython.int, self.trail[c])

    def cell(self, c, d):
        """Return where the peers of two of them stand."""
        return self.stop(c) * self.tables.n + self.stop(d)
