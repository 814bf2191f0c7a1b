# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""Placing one instance: after a loss, or a new one."""

import cython
from cython.cimports.libc.math import sqrt

from moorage.htools.kernel import columns as col

compiled = cython.compiled


class Placing:
    """Places for instances: elsewhere after a loss, or for a new one."""

    def __init__(self, tables, rows, scores, moves, candidates, near, leaving):
        self.tables = tables
        self.rows = rows
        self.scores = scores
        self.moves = moves
        self.candidates = candidates
        self.near = near
        self.leaving = leaving
        self.roots = self.tables.space(self.tables.k)

    def restart(self, i, lost):
        """Restart an instance of a lost node elsewhere; return where, or -1.

        The rows change accordingly. Every check but the hard ones is skipped;
        ties go to the last node.
        """
        verbs: cython.int = int(self.tables.inst(i)[col.I_VERBS])
        verb: cython.int = col.F if verbs & col.CAN_F else col.FA
        best: cython.int = -1
        least: cython.double = col.HUGE
        score: cython.double
        t: cython.int
        self.tables.force = True
        self.rows.reserve(i)
        if verb == col.F:
            t = int(self.tables.inst(i)[col.I_S])
            if self.tables.row(t)[col.OFFLINE] != 0.0 or not self.moves.run(
                i, col.F, -1
            ):
                return -1
            self.leaving.commit(i, col.F, -1)
            return t
        if self.scores.dirty:
            self.scores.measure_all()
        self.near.begin(col.HUGE, -col.HUGE)
        self.candidates.leave(i)
        for t in range(self.tables.n):
            if t != lost:
                self.candidates.target(i, t)
        self.near.weed()
        best = int(self.near.kept[2]) if self.near.count == 1 else -1
        for c in range(self.near.count if best < 0 else 0):
            t = int(self.near.kept[4 * c + 2])
            score = self.moves.change(i, col.FA, t, True)
            if not least < score:
                best, least = t, score
        if best >= 0:
            self.moves.change(i, col.FA, best, False)
            self.leaving.commit(i, col.FA, best)
        return best

    def verdict(self, order, lost):
        """Say what memory alone decides before anybody restarts: 1, -1, or 0: nothing.

        Parameters
        ----------
        order
            Instances of the lost node.
        """
        rest: cython.double = 0.0
        largest: cython.double = 0.0
        kind: cython.int = -1
        for i in order:
            if not self.needs_memory_alone(i):
                return 0
            if kind >= 0 and self.tables.kind(i) != kind:
                return 0
            kind = self.tables.kind(i)
            rest += self.tables.inst(i)[col.I_RUNS]
            largest = max(largest, self.tables.inst(i)[col.I_RUNS])
        return self.foresee(lost, max(kind, 0), rest, largest)

    def lose(self, order, lost):
        """Restart instances of a lost node in order; say whether all find room."""
        for at in range(len(order)):
            known = self.verdict(order[at:], lost)
            if known != 0:
                return known > 0
            if self.restart(order[at], lost) < 0:
                return False
        return True

    def needs_memory_alone(self, i):
        """Say whether an instance may restart on each node of its class with memory."""
        if self.tables.barred or self.tables.kind(i) < 0:
            return False
        return (self.tables.verbs(i) & col.CAN_F) == 0 and self.tables.inst(i)[
            col.I_LOCAL
        ] == 0.0

    def foresee(self, lost, kind, rest, largest):
        """Return 1 when all are sure to find memory, -1 when some will not, else 0.

        All are of one class, so they have the same refuges. Who is placed somewhere
        takes memory from `free`, the sum over them. An instance is stranded when no
        refuge has more than it needs; then `free` is at most that many times its need.
        """
        refuges = 0.0
        free = 0.0
        top = 0.0
        for t in range(self.tables.n):
            if t == lost or not self.tables.chooses(kind, t):
                continue
            if self.tables.row(t)[col.OFFLINE] == 0.0:
                refuges += 1.0
                if self.tables.row(t)[col.FREE] > 0.0:
                    free += self.tables.row(t)[col.FREE]
                    top = max(top, self.tables.row(t)[col.FREE])
        if largest >= top or rest >= free:
            return -1
        return 1 if free - (rest - largest) > refuges * largest else 0

    def anew(self, i, places):
        """Make an instance anew on the best of some nodes; return where, or -1.

        Its old place keeps what it had there: the node is lost anyway.
        """
        best: cython.int = -1
        least: cython.double = col.HUGE
        score: cython.double
        t: cython.int
        if self.scores.dirty:
            self.scores.measure_all()
        for place in places:
            t = place
            self.rows.copy(t, self.tables.n + 2)
            if self.rows.add_primary(i, self.tables.n + 2, t, True) != 0:
                continue
            score = self.alone(i, t)
            if not least < score:
                best, least = t, score
        if best >= 0:
            self.rows.copy(best, self.tables.n + 2)
            self.rows.add_primary(i, self.tables.n + 2, best, True)
            self.alone(i, best)
            self.scores.take_counts()
            self.tables.mark(i, best, 1.0)
            self.rows.copy(self.tables.n + 2, best)
            self.scores.dirty = True
        return best

    def alone(self, i, t):
        """Return the score with one more instance on a node."""
        n = self.tables.n
        self.scores.measure(n + 2, t, self.scores.new, 2 * self.tables.k)
        self.scores.as_is()
        if self.tables.tags > 0:
            self.scores.c_tags += self.tables.clashes(i, t)
        self.arrive(i, t)
        return self.scores.exactly(
            -1, -1, t, self.scores.n1 + self.rows.unsafe(n + 2) - self.rows.unsafe(t)
        )

    def arrive(self, i, t):
        """Count what failure domains cost with one more instance on a node."""
        if self.tables.places > 0 and self.tables.inst(i)[col.I_REAL] != 0.0:
            self.scores.c_apart += self.tables.inst(i)[
                col.I_LOCATION
            ] + self.tables.missed(i, t)
            self.scores.c_domains += self.tables.crowds(i, -1, t)

    def singles(self, i, places, force):
        """Return (refusal, score) of a new instance on each of some nodes."""
        found = []
        n: cython.int = self.tables.n
        t: cython.int
        why: cython.int
        for place in places:
            t = place
            self.rows.copy(t, n + 2)
            why = col.NO_DISK
            if self.tables.reaches(i, t):
                why = self.rows.add_primary(i, n + 2, t, force)
            if why != 0:
                found.append((why, 0.0))
                continue
            found.append((0, self.alone(i, t)))
        return found

    def pairs(self, i, p, others, force):
        """Return refusals and scores of a new mirrored instance on p and others.

        The scores come from running sums, as `moorage.htools.placement.allocate.Sums`
        computes them.
        """
        why: cython.int = self.enter(i, p, force)
        if why != 0:
            return [why] * len(others), []
        whys, scores = [], []
        for s in others:
            why = self.why_pair(i, p, s)
            whys.append(why)
            if why == 0:
                scores.append(self.pair(i, p, s))
        return whys, scores

    def best_pair(self, i, places, force):
        """Return how often each refusal occurs, and the last of the best pairs.

        The pair comes as (score, p, s), or as None; places are those of `pairs`.
        """
        why: cython.int
        s: cython.int
        score: cython.double
        least: cython.double = col.HUGE
        best = None
        counts = [0] * (col.NO_INTERNAL + 1)
        for p, others in places:
            why = self.enter(i, p, force)
            if why != 0:
                counts[why] += len(others)
                continue
            for other in others:
                s = other
                why = self.why_pair(i, p, s)
                counts[why] += 1
                if why == 0:
                    score = self.pair(i, p, s)
                    if score <= least:
                        least = score
                        best = (score, p, other)
        return counts, best

    def enter(self, i, p, force):
        """Run a new instance on p, in scratch; return 0, or the refusal."""
        n = self.tables.n
        self.rows.copy(p, n)
        why = self.rows.add_primary(i, n, p, force)
        if why != 0:
            return why
        counts = self.tables.row(p)[col.OFFLINE] == 0.0
        if counts:
            self.scores.measure(n, p, self.scores.new, 0)
        else:
            for k in range(self.tables.k):
                self.scores.new[k] = self.scores.x[p * self.tables.k + k]
        for k in range(self.tables.k):
            self.shift(k, p)
        self.scores.as_is()
        if counts and self.tables.tags > 0:
            self.scores.c_tags += self.tables.clashes(i, p)
        self.scores.c_domains += self.tables.crowds(i, -1, p)
        return 0

    def why_pair(self, i, p, s):
        """Keep its second copy on s, in scratch; return 0, or the refusal."""
        self.rows.copy(s, self.tables.n + 1)
        peer = self.tables.peers[s * self.tables.n + p]
        return self.rows.add_secondary(i, self.tables.n + 1, s, peer, False, False)

    def pair(self, i, p, s):
        """Return the score of the pair in scratch."""
        n = self.tables.n
        self.scores.measure(n + 1, s, self.scores.new, self.tables.k)
        unsafe = self.scores.n1
        if self.tables.row(p)[col.OFFLINE] == 0.0:
            unsafe += self.rows.unsafe(n) - self.rows.unsafe(p)
        unsafe = (unsafe + self.rows.unsafe(n + 1)) - self.rows.unsafe(s)
        if self.tables.places > 0:
            self.scores.c_apart = (
                self.scores.apart + self.tables.common(p, s) + self.tables.missed(i, p)
            )
        return self.shifted(p, s, unsafe)

    def shift(self, k, p):
        """Write sum, variance and spread of a value after p changed."""
        total, now = self.scores.sums[k], self.scores.new[k]
        was, count = self.scores.x[p * self.tables.k + k], self.scores.counts[k]
        d = now - was
        dd = now * now - was * was
        dev = (count * dd - 2.0 * total * d) - d * d
        dev = self.scores.variances[k] + (dev / (count * count) if count else 0.0)
        # The two rows of bounds are free here; they hold the shifted sums.
        self.moves.widest[k] = total + d
        self.moves.least[k] = max(0.0, dev)
        self.roots[k] = sqrt(max(0.0, dev))

    def shifted(self, p, s, unsafe):
        """Return the score after p and s changed, in the order that defines it."""
        # The compiler keeps locals in registers, and must read fields again.
        x, new, sums = self.scores.x, self.scores.new, self.scores.sums
        measured, shares = self.scores.measured, self.tables.shares
        totals, variances = self.moves.widest, self.moves.least
        count, width, online = self.tables.shared, self.tables.k, self.scores.online
        mean = self.unit_spread(s) if self.tables.counted > 0 else 0.0
        for k in range(count):
            spread = shares[k * col.SW + col.S_SPREAD]
            added = shares[k * col.SW + col.S_SUM]
            now, was = new[width + k], x[s * width + k]
            if self.tables.counted > 0 and shares[k * col.SW + col.S_UNITS] != 0:
                measured[spread] = mean
            elif spread >= 0 and now == was:  # most values of a second copy's node
                measured[spread] = self.roots[k]
            elif spread >= 0:
                d = now - was
                dd = now * now - was * was
                dev = (online * dd - 2.0 * totals[k] * d) - d * d
                dev = variances[k] + dev / (online * online)
                measured[spread] = sqrt(dev) if dev > 0.0 else 0.0
            if added >= 0:
                moved = (sums[k] + new[k]) - x[p * width + k]
                measured[added] = (moved + now) - was
        return self.scores.weigh(unsafe)

    def unit_spread(self, s):
        """Return the mean spread over storage units after p and s changed."""
        found, width = 0.0, self.tables.k
        for k in range(self.tables.shared, width):
            now, was = self.scores.new[width + k], self.scores.x[s * width + k]
            count, d = self.scores.counts[k], now - was
            if d == 0.0 or count == 0.0:
                found += self.roots[k]
                continue
            dd = now * now - was * was
            dev = (count * dd - 2.0 * self.moves.widest[k] * d) - d * d
            dev = self.moves.least[k] + dev / (count * count)
            found += sqrt(dev) if dev > 0.0 else 0.0
        return found / self.tables.counted
