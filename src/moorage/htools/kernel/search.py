# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""The search for the best move, with what is remembered from one step to the next.

An instance whose nodes did not change since it was scanned is not scanned again while
a bound forbids that it wins: each V' has moved by at most
``|dV| + 2 |dS| max|d| / n^2``, which bounds its score from below.
"""

from array import array

import cython
from cython.cimports.libc.math import sqrt

from moorage.htools.kernel import columns as col


class Search:
    """Candidates of all instances."""

    def __init__(self, tables, rows, scores, moves, candidates, near):
        self.tables = tables
        self.rows = rows
        self.scores = scores
        self.moves = moves
        self.candidates = candidates
        self.near = near
        self.memory = 3 + 4 * self.tables.k
        self.searched = False

    def find(self, current, above, fresh, touched):
        """Return the moves near the best one: (score, instance, verb, target).

        Parameters
        ----------
        current
            Score to beat.
        above
            Pass over moves with scores up to here.
        fresh
            Forget what earlier searches found.
        touched
            Nodes that changed since the last search.
        """
        i: cython.int
        if not self.searched:  # it is much, and many never search
            self.memo = self.tables.space(self.tables.m * self.memory)
            self.searched = True
        self.near.begin(current, above)
        marks = array("i", bytes(4 * self.tables.n))
        for node in touched:
            marks[node] = 1
        changed = array("i", touched)
        changed.append(-1)
        marked: cython.p_int = self.tables.integers(marks)
        news: cython.p_int = self.tables.integers(changed)
        late = array("i", bytes(4 * self.tables.m + 4))
        waiting: cython.p_int = self.tables.integers(late)
        kept: cython.int = 0
        for i in range(self.tables.m):
            if fresh or self.stale(i, marked):
                self.scan(i)
            else:
                self.freshen(i, news)
                waiting[kept] = i
                kept += 1
        self.scan_late(waiting, kept)
        return self.all_near(current)

    def scan_late(self, waiting, count):
        """Scan the instances whose bound does not forbid that they win, best first."""
        near = []
        for c in range(count):
            if self.memo[waiting[c] * self.memory + 1] <= self.near.best + col.NEAR:
                near.append((self.memo[waiting[c] * self.memory + 1], waiting[c]))
        for bound, i in sorted(near):
            if bound > self.near.best + col.NEAR:
                break
            self.scan(i)

    def scan(self, i):
        """Weigh all moves of an instance, and note what bounds them."""
        least = col.HUGE
        for a in range(self.tables.actives):
            self.moves.widest[a] = 0.0
            self.moves.least[a] = col.HUGE
        self.rows.reserve(i)
        if self.tables.verbs(i) & col.CAN_F:
            least = self.offer(i, col.F, -1)
        self.candidates.leave(i)
        for t in range(self.tables.n):
            found = self.candidates.target(i, t)
            least = min(least, found)
        self.note(i, least)

    def note(self, i, least):
        """Remember the least score of an instance, and what bounds it later."""
        o = i * self.memory
        self.memo[o] = 1.0
        self.memo[o + 1] = least
        self.memo[o + 2] = self.scores.constant()
        for a in range(self.tables.actives):
            self.memo[o + 3 + a] = self.scores.level_s[a]
            self.memo[o + 3 + self.tables.k + a] = self.scores.level_v[a]
            self.memo[o + 3 + 2 * self.tables.k + a] = self.moves.widest[a]
            self.memo[o + 3 + 3 * self.tables.k + a] = self.moves.least[a]

    def recall(self, i):
        """Return a bound on the scores of an instance that was not touched."""
        o = i * self.memory
        bound = self.memo[o + 1] + self.scores.constant() - self.memo[o + 2]
        for a in range(self.tables.actives):
            self.moves.widest[a] = self.memo[o + 3 + 2 * self.tables.k + a]
            self.moves.least[a] = self.memo[o + 3 + 3 * self.tables.k + a]
            # `level_s` is twice the sum, as the bound wants it.
            drop = self.scores.level_s[a] - self.memo[o + 3 + a]
            if drop < 0.0:
                drop = -drop
            drop *= self.moves.widest[a] * self.scores.shrinks[a]
            drop += self.memo[o + 3 + self.tables.k + a] - self.scores.level_v[a]
            # Rounding may move a variance a little more than that.
            drop += 1e-15 * self.scores.level_v[a]
            if drop > 0.0 and self.moves.least[a] < col.HUGE:
                # sqrt(v) - sqrt(max(v - drop, 0)) is largest at v = drop, and v is at
                # least self.moves.least[a].
                low = max(self.moves.least[a], drop)
                bound -= self.tables.merged[a] * (sqrt(low) - sqrt(low - drop))
                self.moves.least[a] = max(self.moves.least[a] - drop, 0.0)
        return bound

    def stale(self, i, marks):
        """Say whether an instance must be scanned in full."""
        s = self.tables.second(i)
        if self.memo[i * self.memory] == 0.0 or marks[self.tables.home(i)] != 0:
            return True
        # Whoever moves may change who is together anywhere.
        if self.tables.places > 0 and self.tables.inst(i)[col.I_TAGS] > 0.0:
            return True
        return s >= 0 and marks[s] != 0

    def freshen(self, i, touched):
        """Bring a bound up to date with targets that changed; -1 ends them."""
        c = 0
        bound = self.recall(i)
        self.rows.reserve(i)
        self.candidates.leave(i)
        while touched[c] >= 0:
            found = self.candidates.target(i, touched[c])
            bound = min(bound, found)
            c += 1
        self.note(i, bound)

    def offer(self, i, verb, t):
        """Score a candidate on scratch rows, and keep it if it is near the best."""
        found = self.moves.change(i, verb, t, False)
        self.near.keep(i, verb, t, found)
        return found

    def all_near(self, current):
        """Return every candidate near the best whose exact score is lower."""
        found = []
        for c in range(self.near.count):
            if self.near.kept[4 * c + 3] >= self.near.best + col.NEAR:
                continue
            i = int(self.near.kept[4 * c])
            verb = int(self.near.kept[4 * c + 1])
            t = int(self.near.kept[4 * c + 2])
            self.rows.reserve(i)
            score = self.moves.change(i, verb, t, True)
            if score < current:
                found.append((score, i, verb, t))
        return found

    def band(self):
        """Return the score up to which candidates were looked at closely."""
        return self.near.best + col.NEAR
