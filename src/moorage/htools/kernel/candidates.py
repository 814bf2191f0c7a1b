# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""What a move would score, in a handful of products.

A verb changes how many primaries and second copies the old nodes and the target have
of an instance:

      p: main copy   s: main copy   t: main copy
FA         -1   .           .   .          1   .
R           .   .           .  -1          .   1
RF         -1   1           .  -1          1   .
FRF        -1   .           .   .          1   .
FR         -1   .           1  -1          .   1

Every metric but the reserve changes by a multiple of that. Changing nodes from x to y
changes the variance V of a metric with sum S over n nodes to

    V' = V + (n q - 2 S d - d^2) / n^2,   d = sum(y - x),   q = sum(y^2 - x^2)

and d and q fall into a part of the old nodes, which `leave` computes once for an
instance, and a part of the target, so a candidate costs O(1). Rounding makes that good
to about 1e-8 only: who is within `NEAR` of the best must be scored again in full.
"""

from cython.cimports.libc.math import sqrt

from moorage.htools.kernel import columns as col


class Candidates:
    """Moves that are weighed, the best of which are kept in `Near`."""

    def __init__(self, tables, rows, scores, moves, near):
        self.tables = tables
        self.rows = rows
        self.scores = scores
        self.moves = moves
        self.near = near
        self.old_d, self.old_q = (
            self.tables.space(6 * self.tables.k),
            self.tables.space(6 * self.tables.k),
        )
        self.rest, self.main = self.tables.space(6), self.tables.space(self.tables.k)
        self.copies = self.tables.space(self.tables.k)

    def leave(self, i):
        """Compute what each verb changes on the old nodes of an instance."""
        p, s = self.tables.home(i), self.tables.second(i)
        base = self.scores.constant()
        kept = self.tables.row(p)[col.KEPT]
        self.amounts(i)
        self.gone_p = self.tables.is_off(p) or self.tables.force
        self.kept_d, self.kept_q = 0.0, 0.0
        away = base + self.bear(i, p, -1.0, 0.0, kept)
        if s < 0:
            self.rest[col.FA] = away
            self.spreads(col.FA, p, -1.0, 0.0, p, 0.0, 0.0)
            return
        self.gone_s = self.tables.is_off(s) or self.tables.force
        self.stays = self.tables.inst(i)[col.I_REAL] == 0.0 or self.rows.still_runs(
            i, p
        )
        self.as_second = self.rows.holds(i, p, 1.0, 1.0)
        self.rest[col.RF] = base + self.bear(i, s, 0.0, -1.0, self.rows.here)
        # p is looked at anew, even where nothing changes.
        self.rest[col.R] = self.rest[col.RF] + self.bear(i, p, 0.0, 0.0, kept)
        self.spreads(col.R, p, 0.0, 0.0, s, 0.0, -1.0)
        # What p changes depends on the target, and so does s in FRF.
        self.spreads(col.RF, p, -1.0, 1.0, s, 0.0, -1.0)
        self.kept_d, self.kept_q = 0.0, 0.0
        self.leave_through(i, p, s, away)

    def leave_through(self, i, p, s, away):
        """Compute the same for the verbs that first fail over to the secondary."""
        self.through = False
        if self.tables.verbs(i) & col.THROUGH == 0 or not self.tables.migrates(p, s):
            return
        fit = self.rows.runs(i, s, 1.0, self.rows.here)
        if fit == 0 or (fit == 1 and not self.gone_p):
            return
        self.through = True
        self.as_again = self.rows.holds(i, s, 0.0, 1.0)
        self.rest[col.FRF] = away
        self.spreads(col.FRF, p, -1.0, 0.0, s, 0.0, 0.0)
        self.rest[col.FR] = away + self.bear(i, s, 1.0, -1.0, self.rows.here)
        self.spreads(col.FR, p, -1.0, 0.0, s, 1.0, -1.0)

    def amounts(self, i):
        """Note what an instance adds to each active value, before scaling."""
        t, shares = self.tables.inst(i), self.tables.shares
        real = t[col.I_REAL] != 0.0
        for a in range(self.tables.actives):
            k, main, copies = self.tables.active[a], 0.0, 0.0
            if k >= self.tables.shared:
                main = copies = self.unit_amount(i, k - self.tables.shared)
            elif real or shares[k * col.SW + col.S_PLANNED] != 0:
                sign = shares[k * col.SW + col.S_SIGN]
                if shares[k * col.SW + col.S_MAIN] >= 0:
                    main = sign * t[shares[k * col.SW + col.S_MAIN]]
                if shares[k * col.SW + col.S_COPY] >= 0:
                    copies = sign * t[shares[k * col.SW + col.S_COPY]]
            self.main[a], self.copies[a] = main, copies

    def unit_amount(self, i, unit):
        """Return what an instance adds to the free room of a storage unit."""
        found = 0.0
        if self.tables.inst(i)[col.I_REAL] == 0.0:
            return 0.0
        for c in range(
            self.tables.first(i, col.I_WANT), self.tables.last(i, col.I_WANT)
        ):
            if self.tables.wanted[c] in (unit, -2 - unit):
                found -= self.tables.sizes[c]
        return found

    def spreads(self, verb, p, main_p, copy_p, s, main_s, copy_s):
        """Write d and q of the old nodes, the reserve as it was counted last."""
        o, at_p, at_s = verb * self.tables.k, p * self.tables.k, s * self.tables.k
        self.old_d[o], self.old_q[o] = self.kept_d, self.kept_q
        for a in range(1, self.tables.actives):
            d = main_p * self.main[a] + copy_p * self.copies[a]
            e = main_s * self.main[a] + copy_s * self.copies[a]
            d *= self.scores.scales[at_p + a]
            e *= self.scores.scales[at_s + a]
            self.old_d[o + a] = d + e
            self.old_q[o + a] = d * (self.scores.twice_x[at_p + a] + d)
            self.old_q[o + a] += e * (self.scores.twice_x[at_s + a] + e)

    def bear(self, i, j, main, copy, kept):
        """Return what a node adds to the counted parts of the score.

        The reserve, which becomes `kept`, is counted into `kept_d`, `kept_q`. Failure
        domains are left to `far`.
        """
        r, t = self.tables.row(j), self.tables.inst(i)
        w = self.tables.weights
        real = t[col.I_REAL] != 0.0
        found = 0.0
        if self.tables.is_off(j):
            away = w[col.G_OFF_PRI] * main + w[col.G_OFF_ALL] * (main + copy)
            return away if real else 0.0
        if real:
            if r[col.FREE] - main * t[col.I_RUNS] <= kept:
                found = r[col.MAINS] + r[col.COPIES] + main + copy
            found = w[col.G_UNSAFE] * (found - self.rows.unsafe(j))
        if kept != r[col.KEPT]:
            d = (kept - r[col.KEPT]) * self.scores.scales[j * self.tables.k]
            self.kept_d += d
            self.kept_q += d * (self.scores.twice_x[j * self.tables.k] + d)
            found += self.tables.adding[0] * d
        if self.tables.tags > 0 and main > 0.0:
            found += w[col.G_TAGS] * self.tables.clashes(i, j)
        if self.tables.tags > 0 and main < 0.0:
            found -= w[col.G_TAGS] * self.tables.unclashes(i, j)
        return found

    def kept_with(self, i, j, peer, kept):
        """Return the reserve of a node that gets the copy of an instance on `peer`."""
        t = self.tables.inst(i)
        if t[col.I_REAL] == 0.0:
            return kept
        return max(kept, self.tables.peers[j * self.tables.n + peer] + t[col.I_KEEPS])

    def target(self, i, t):
        """Weigh all moves of an instance to one target; return the least score.

        `leave` was asked about the instance before.
        """
        verbs, p, s = self.tables.verbs(i), self.tables.home(i), self.tables.second(i)
        fit = 0
        least = col.HUGE
        if self.tables.is_off(t) or t == p or t == s:
            return col.HUGE
        kept = self.tables.row(t)[col.KEPT]
        if verbs & col.HOSTING:
            fit = self.rows.runs(i, t, 0.0, kept)
        if fit > 0:
            more = self.bear(i, t, 1.0, 0.0, kept)
            if verbs & col.CAN_FA and (fit == 2 or self.gone_p):
                least = self.weigh_alone(i, t, p, more)
            if verbs & col.CAN_RF and (fit == 2 or self.tables.force):
                least = min(least, self.weigh_swap(i, t, p, more))
            if verbs & col.CAN_FRF and self.through and (fit == 2 or self.gone_p):
                least = min(least, self.weigh_again(i, t, s, more))
        if verbs & col.KEEPING:
            fit = self.rows.holds(i, t, 0.0, 0.0)
            if verbs & col.CAN_R and self.stays and fit > 0:
                least = min(least, self.weigh_copy(i, col.R, t, p, fit, self.gone_s))
            if verbs & col.CAN_FR and self.through and fit > 0:
                least = min(least, self.weigh_copy(i, col.FR, t, s, fit, self.gone_p))
        return least

    def weigh_alone(self, i, t, p, more):
        """Return the score of FA."""
        if not self.tables.migrates(p, t) or not self.tables.reaches(i, t):
            return col.HUGE
        self.kept_d, self.kept_q = 0.0, 0.0
        return self.weigh(i, col.FA, t, self.main, self.rest[col.FA] + more)

    def weigh_swap(self, i, t, p, more):
        """Return the score of RF, after which p keeps the second copy."""
        before = self.tables.row(p)[col.KEPT]
        left = self.tables.row(p)[col.FREE] + self.tables.inst(i)[col.I_RUNS]
        kept = self.kept_with(i, p, t, before)
        if self.as_second == 0 or not self.tables.migrates(p, t):
            return col.HUGE
        if not self.gone_s and (self.as_second == 1 or before < left <= kept):
            return col.HUGE
        self.kept_d = self.old_d[col.RF * self.tables.k]
        self.kept_q = self.old_q[col.RF * self.tables.k]
        more += self.bear(i, p, -1.0, 1.0, kept)
        return self.weigh(i, col.RF, t, self.main, self.rest[col.RF] + more)

    def weigh_again(self, i, t, s, more):
        """Return the score of FRF, after which s keeps the copy for t."""
        left = self.tables.row(s)[col.FREE]
        kept = self.kept_with(i, s, t, self.rows.here)
        if self.as_again == 0 or not self.tables.migrates(s, t):
            return col.HUGE
        if not self.gone_p and (self.as_again == 1 or self.rows.here < left <= kept):
            return col.HUGE
        self.kept_d, self.kept_q = 0.0, 0.0
        more += self.bear(i, s, 0.0, 0.0, kept)
        return self.weigh(i, col.FRF, t, self.main, self.rest[col.FRF] + more)

    def weigh_copy(self, i, verb, t, home, fit, force):
        """Return the score of R or FR, after which t keeps the copy for `home`."""
        r = self.tables.row(t)
        kept = self.kept_with(i, t, home, r[col.KEPT])
        strained = r[col.FREE] <= kept and r[col.UNSAFE] == 0.0
        if self.tables.inst(i)[col.I_REAL] == 0.0:
            strained = False
        if not force and (fit == 1 or strained):
            return col.HUGE
        self.kept_d, self.kept_q = (
            self.old_d[verb * self.tables.k],
            self.old_q[verb * self.tables.k],
        )
        more = self.bear(i, t, 0.0, 1.0, kept)
        return self.weigh(i, verb, t, self.copies, self.rest[verb] + more)

    def weigh(self, i, verb, t, amounts, score):
        """Return the score of a candidate to about 1e-8; keep it if it is near.

        Parameters
        ----------
        amounts
            What comes to the target, before scaling.
        score
            The counted parts, failure domains aside.
        """
        o, g = t * self.tables.k, verb * self.tables.k
        d, q = self.kept_d, self.kept_q
        # The compiler keeps locals in registers, and must read fields again.
        scales, twice_x = self.scores.scales, self.scores.twice_x
        old_d, old_q = self.old_d, self.old_q
        level_s, level_v, merged = (
            self.scores.level_s,
            self.scores.level_v,
            self.tables.merged,
        )
        counts, shrinks = self.scores.level_n, self.scores.shrinks
        widest, least = self.moves.widest, self.moves.least
        if self.tables.places > 0:
            score += self.far(i, verb, t)
        for a in range(self.tables.actives):
            if a > 0:
                v = amounts[a] * scales[o + a]
                d = old_d[g + a] + v
                q = old_q[g + a] + v * (twice_x[o + a] + v)
            v = level_v[a] + (counts[a] * q - d * (level_s[a] + d)) * shrinks[a]
            v = v if v > 0.0 else 0.0
            d = d if d > 0.0 else -d
            widest[a] = d if d > widest[a] else widest[a]
            least[a] = v if v < least[a] else least[a]
            score += merged[a] * sqrt(v)
        for a in range(self.tables.summed, self.tables.actives):
            d = old_d[g + a] + amounts[a] * scales[o + a]
            score += self.tables.adding[a] * d
        self.near.keep(i, verb, t, score)
        return score

    def far(self, i, verb, t):
        """Return what a move changes in the scores of failure domains."""
        self.scores.as_is()
        self.moves.count_places(i, verb, self.tables.home(i), self.tables.second(i), t)
        apart = self.scores.c_apart - self.scores.apart
        domains = self.scores.c_domains - self.scores.domains
        w = self.tables.weights
        return w[col.G_APART] * apart + w[col.G_DOMAINS] * domains
