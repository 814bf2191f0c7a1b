# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""One move, done on scratch rows, and its score to the last digit."""

import cython
from cython.cimports.libc.math import sqrt

from moorage.htools.kernel import columns as col


class Moves:
    """Rows on which a move can be tried.

    p, s and t, the old nodes and the target, become the rows n, n + 1 and n + 2.
    """

    def __init__(self, tables, rows, scores):
        self.tables = tables
        self.rows = rows
        self.scores = scores
        self.widest, self.least = (
            self.tables.space(self.tables.k),
            self.tables.space(self.tables.k),
        )

    def run(self, i, verb, t):
        """Do a move on the scratch rows; say whether it is allowed."""
        n, p, s = self.tables.n, self.tables.home(i), self.tables.second(i)
        if not self.may_travel(i, verb, p, s, t):
            return False
        gone = self.tables.is_off(p) or self.tables.force
        self.rows.copy(p, n)
        if verb == col.FA:
            self.rows.copy(t, n + 2)
            self.rows.drop_primary(i, n, p)
            return self.rows.add_primary(i, n + 2, t, gone) == 0
        self.rows.copy(s, n + 1)
        if verb != col.F:
            self.rows.copy(t, n + 2)
        self.rows.drop_primary(i, n, p)
        self.rows.drop_secondary(i, n + 1, s, self.rows.here)
        if verb == col.F:
            return self.run_failover(i, p, s, gone)
        if verb == col.R or verb == col.RF:
            return self.run_replace(i, verb, t, p, s)
        return self.run_through(i, verb, t, s, gone)

    def may_travel(self, i, verb, p, s, t):
        """Say whether live migration may go the ways of a verb."""
        if verb == col.R:
            return True
        if verb == col.FA:
            return self.tables.migrates(p, t) and self.tables.reaches(i, t)
        if verb == col.RF:
            return self.tables.migrates(p, t)
        return self.tables.migrates(p, s) and (
            verb != col.FRF or self.tables.migrates(s, t)
        )

    def run_failover(self, i, p, s, gone):
        """Swap primary and secondary."""
        n, peer = self.tables.n, self.tables.peers[p * self.tables.n + s]
        if self.rows.add_primary(i, n + 1, s, gone) != 0:
            return False
        return self.rows.add_secondary(i, n, p, peer, gone, self.tables.is_off(p)) == 0

    def run_replace(self, i, verb, t, p, s):
        """Do the moves that first replace the secondary."""
        n = self.tables.n
        lost = self.tables.is_off(s) or self.tables.force
        if verb == col.R:
            peer = self.tables.peers[t * n + p]
            if self.rows.add_secondary(i, n + 2, t, peer, lost, False) != 0:
                return False
            return self.rows.add_primary(i, n, p, True) == 0
        if self.rows.add_primary(i, n + 2, t, self.tables.force) != 0:
            return False
        return (
            self.rows.add_secondary(i, n, p, self.tables.peers[p * n + t], lost, False)
            == 0
        )

    def run_through(self, i, verb, t, s, gone):
        """Do the moves that first fail over to the secondary."""
        n = self.tables.n
        if self.rows.add_primary(i, n + 1, s, gone) != 0:
            return False
        if verb == col.FR:
            return (
                self.rows.add_secondary(
                    i, n + 2, t, self.tables.peers[t * n + s], gone, False
                )
                == 0
            )
        if self.rows.add_primary(i, n + 2, t, gone) != 0:
            return False
        self.rows.drop_primary(i, n + 1, s)
        return (
            self.rows.add_secondary(
                i, n + 1, s, self.tables.peers[s * n + t], gone, False
            )
            == 0
        )

    def change(self, i, verb, t, exact):
        """Return the score after a move, quickly or to the digit; HUGE if refused."""
        p, s = self.tables.home(i), self.tables.second(i)
        if not self.run(i, verb, t):
            return col.HUGE
        if verb == col.F:
            t = -1
        if verb == col.FA:
            s = -1
        self.count_fixed(i, verb, p, s, t)
        unsafe = self.scores.n1
        for slot in range(3):
            node = p if slot == 0 else s if slot == 1 else t
            if node < 0 or self.tables.is_off(node):
                continue
            self.scores.measure(
                self.tables.n + slot, node, self.scores.new, slot * self.tables.k
            )
            unsafe += self.rows.unsafe(self.tables.n + slot) - self.rows.unsafe(node)
        if exact:
            return self.scores.exactly(p, s, t, unsafe)
        return self.quickly(p, s, t, self.scores.counted(unsafe))

    def count_fixed(self, i, verb, p, s, t):
        """Count what is not spread as it is after a move."""
        home = p if verb == col.R else s if verb == col.F or verb == col.FR else t
        up = not self.tables.is_off(p)
        self.scores.as_is()
        if verb != col.R and self.tables.tags > 0:
            self.scores.c_tags += self.tables.clashes(i, home)
            if up:
                self.scores.c_tags -= self.tables.unclashes(i, p)
        if self.tables.inst(i)[col.I_REAL] == 0.0:
            return
        self.count_places(i, verb, p, s, t)
        if not up and verb != col.R:
            self.scores.c_pri -= 1.0
            if verb != col.F and verb != col.RF:
                self.scores.c_all -= 1.0
        if s >= 0 and self.tables.is_off(s):
            if verb == col.R or verb == col.RF:
                self.scores.c_all -= 1.0
            elif verb != col.FRF:
                self.scores.c_pri += 1.0

    def count_places(self, i, verb, p, s, t):
        """Count what failure domains cost after a move."""
        if self.tables.places == 0 or self.tables.inst(i)[col.I_REAL] == 0.0:
            return
        home = p if verb == col.R else s if verb == col.F or verb == col.FR else t
        if not self.tables.is_off(p):
            self.scores.c_apart -= self.tables.inst(i)[
                col.I_LOCATION
            ] + self.tables.missed(i, p)
        if not self.tables.is_off(home):
            self.scores.c_apart += self.shared(i, verb, p, s, t) + self.tables.missed(
                i, home
            )
        self.scores.c_domains += self.tables.crowds(
            i,
            -1 if self.tables.is_off(p) else p,
            -1 if self.tables.is_off(home) else home,
        )

    def shared(self, i, verb, p, s, t):
        """Return how many failure domains the nodes of an instance share after a move.

        A plain failover leaves it as it was counted.
        """
        if verb == col.R or verb == col.RF:
            return self.tables.common(p, t)
        if verb == col.FRF or verb == col.FR:
            return self.tables.common(s, t)
        return self.tables.inst(i)[col.I_LOCATION]

    def quickly(self, p, s, t, rest):
        """Return the score from changed sums, good to about 1e-8."""
        x, new, stride = self.scores.x, self.scores.new, self.tables.k
        use_p = not self.tables.is_off(p)
        use_s = s >= 0 and not self.tables.is_off(s)
        for a in range(self.tables.actives):
            k = self.tables.active[a]
            d, q = 0.0, 0.0
            if use_p:
                d = new[k] - x[p * stride + k]
                q = d * (new[k] + x[p * stride + k])
            if use_s:
                v = new[stride + k] - x[s * stride + k]
                d += v
                q += v * (new[stride + k] + x[s * stride + k])
            if t >= 0:
                v = new[2 * stride + k] - x[t * stride + k]
                d += v
                q += v * (new[2 * stride + k] + x[t * stride + k])
            rest += self.tables.adding[a] * (0.5 * self.scores.level_s[a] + d)
            v = self.scores.counts[k] * q - d * (self.scores.level_s[a] + d)
            v = max(self.scores.level_v[a] + v * self.scores.shrinks[a], 0.0)
            self.widest[a] = max(self.widest[a], d, -d)
            self.least[a] = min(self.least[a], v)
            rest += self.tables.merged[a] * sqrt(v)
        return rest

    def tries(self, i, verb, places, least):
        """Return the score of one verb on each place; 1e300 if refused.

        Scores up to the least one, and up to `least`, are exact; the others
        are good to 1e-7 only, and above it.
        """
        found = []
        bound: cython.double = least
        score: cython.double
        self.rows.reserve(i)
        for t in places:
            score = self.change(i, verb, t, False)
            if score < bound + col.NEAR:
                score = self.change(i, verb, t, True)
                bound = min(bound, score)
            found.append(score)
        return found
