# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""One move, done on scratch rows, and its score to the last digit."""

import cython
from cython.cimports.libc.math import sqrt

from moorage.htools.kernel import columns as col
from moorage.htools.kernel.scores import Scores


class Moves(Scores):
    """Rows on which a move can be tried.

    p, s and t, the old nodes and the target, become the rows n, n + 1 and n + 2.
    """

    def __init__(self, arrays, sizes, force):
        super().__init__(arrays, sizes, force)
        self.widest, self.least = self.space(self.k), self.space(self.k)

    def run(self, i, verb, t):
        """Do a move on the scratch rows; say whether it is allowed."""
        n, p, s = self.n, self.home(i), self.second(i)
        if not self.may_travel(i, verb, p, s, t):
            return False
        gone = self.is_off(p) or self.force
        self.copy(p, n)
        if verb == col.FA:
            self.copy(t, n + 2)
            self.drop_primary(i, n, p)
            return self.add_primary(i, n + 2, t, gone) == 0
        self.copy(s, n + 1)
        if verb != col.F:
            self.copy(t, n + 2)
        self.drop_primary(i, n, p)
        self.drop_secondary(i, n + 1, s, self.here)
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
            return self.migrates(p, t) and self.reaches(i, t)
        if verb == col.RF:
            return self.migrates(p, t)
        return self.migrates(p, s) and (verb != col.FRF or self.migrates(s, t))

    def run_failover(self, i, p, s, gone):
        """Swap primary and secondary."""
        n, peer = self.n, self.peers[p * self.n + s]
        if self.add_primary(i, n + 1, s, gone) != 0:
            return False
        return self.add_secondary(i, n, p, peer, gone, self.is_off(p)) == 0

    def run_replace(self, i, verb, t, p, s):
        """Do the moves that first replace the secondary."""
        n = self.n
        lost = self.is_off(s) or self.force
        if verb == col.R:
            peer = self.peers[t * n + p]
            if self.add_secondary(i, n + 2, t, peer, lost, False) != 0:
                return False
            return self.add_primary(i, n, p, True) == 0
        if self.add_primary(i, n + 2, t, self.force) != 0:
            return False
        return self.add_secondary(i, n, p, self.peers[p * n + t], lost, False) == 0

    def run_through(self, i, verb, t, s, gone):
        """Do the moves that first fail over to the secondary."""
        n = self.n
        if self.add_primary(i, n + 1, s, gone) != 0:
            return False
        if verb == col.FR:
            return (
                self.add_secondary(i, n + 2, t, self.peers[t * n + s], gone, False) == 0
            )
        if self.add_primary(i, n + 2, t, gone) != 0:
            return False
        self.drop_primary(i, n + 1, s)
        return self.add_secondary(i, n + 1, s, self.peers[s * n + t], gone, False) == 0

    def change(self, i, verb, t, exact):
        """Return the score after a move, quickly or to the digit; HUGE if refused."""
        p, s = self.home(i), self.second(i)
        if not self.run(i, verb, t):
            return col.HUGE
        if verb == col.F:
            t = -1
        if verb == col.FA:
            s = -1
        self.count_fixed(i, verb, p, s, t)
        unsafe, kept = self.n1, self.kept
        for slot in range(3):
            node = p if slot == 0 else s if slot == 1 else t
            if node < 0 or self.is_off(node):
                continue
            self.measure(self.n + slot, node, self.new, slot * self.k)
            unsafe += self.unsafe(self.n + slot) - self.unsafe(node)
            kept += self.new[slot * self.k + col.X_KEPT]
            kept -= self.x[node * self.k + col.X_KEPT]
        if exact:
            return self.exactly(p, s, t, unsafe)
        rest = unsafe + 0.25 * kept + self.c_apart + self.c_domains
        rest += 2.0 * self.c_tags + 4.0 * self.c_all + 16.0 * self.c_pri
        return self.quickly(p, s, t, rest)

    def count_fixed(self, i, verb, p, s, t):
        """Count what is not spread as it is after a move."""
        home = p if verb == col.R else s if verb == col.F or verb == col.FR else t
        up = not self.is_off(p)
        self.as_is()
        if verb != col.R and self.tags > 0:
            self.c_tags += self.clashes(i, home)
            if up:
                self.c_tags -= self.unclashes(i, p)
        if self.inst(i)[col.I_REAL] == 0.0:
            return
        self.count_places(i, verb, p, s, t)
        if not up and verb != col.R:
            self.c_pri -= 1.0
            if verb != col.F and verb != col.RF:
                self.c_all -= 1.0
        if s >= 0 and self.is_off(s):
            if verb == col.R or verb == col.RF:
                self.c_all -= 1.0
            elif verb != col.FRF:
                self.c_pri += 1.0

    def count_places(self, i, verb, p, s, t):
        """Count what failure domains cost after a move."""
        if self.places == 0 or self.inst(i)[col.I_REAL] == 0.0:
            return
        home = p if verb == col.R else s if verb == col.F or verb == col.FR else t
        if not self.is_off(p):
            self.c_apart -= self.inst(i)[col.I_LOCATION] + self.missed(i, p)
        if not self.is_off(home):
            self.c_apart += self.shared(i, verb, p, s, t) + self.missed(i, home)
        self.c_domains += self.crowds(
            i, -1 if self.is_off(p) else p, -1 if self.is_off(home) else home
        )

    def shared(self, i, verb, p, s, t):
        """Return how many failure domains the nodes of an instance share after a move.

        A plain failover leaves it as it was counted.
        """
        if verb == col.R or verb == col.RF:
            return self.common(p, t)
        if verb == col.FRF or verb == col.FR:
            return self.common(s, t)
        return self.inst(i)[col.I_LOCATION]

    def quickly(self, p, s, t, rest):
        """Return the score from changed sums, good to about 1e-8."""
        x, new, stride = self.x, self.new, self.k
        use_p = not self.is_off(p)
        use_s = s >= 0 and not self.is_off(s)
        for a in range(self.actives):
            k = self.active[a]
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
            v = self.counts[k] * q - d * (self.level_s[a] + d)
            v = max(self.level_v[a] + v * self.shrinks[a], 0.0)
            self.widest[a] = max(self.widest[a], d, -d)
            self.least[a] = min(self.least[a], v)
            rest += self.merged[a] * sqrt(v)
        return rest

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
