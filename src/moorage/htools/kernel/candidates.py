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
from moorage.htools.kernel.moves import Moves


class Candidates(Moves):
    """Moves that are weighed, the best of which are kept."""

    def __init__(self, arrays, n, m, tags, force):
        super().__init__(arrays, n, m, tags, force)
        self.near, self.count = self.space(4 * col.ROOM), 0
        self.old_d, self.old_q = self.space(6 * col.K), self.space(6 * col.K)
        self.rest, self.main = self.space(6), self.space(col.K)
        self.copies = self.space(col.K)

    def keep(self, i, verb, t, found):
        """Keep a candidate if it is near the best."""
        if found <= self.above or found >= self.best + col.NEAR:
            return
        self.best = min(self.best, found)
        if self.count == col.ROOM:
            self.weed()
        if self.count < col.ROOM:
            self.near[4 * self.count] = i
            self.near[4 * self.count + 1] = verb
            self.near[4 * self.count + 2] = t
            self.near[4 * self.count + 3] = found
            self.count += 1

    def weed(self):
        """Drop kept candidates that are no longer near."""
        left = 0
        for c in range(self.count):
            if self.near[4 * c + 3] < self.best + col.NEAR:
                for b in range(4):
                    self.near[4 * left + b] = self.near[4 * c + b]
                left += 1
        self.count = left

    def leave(self, i):
        """Compute what each verb changes on the old nodes of an instance."""
        p = self.home(i)
        s = self.second(i)
        base = self.constant()
        kept = self.rows[p * col.W + col.KEPT]
        self.amounts(i)
        self.kept_d, self.kept_q = 0.0, 0.0
        away = base + self.bear(i, p, -1.0, 0.0, kept)
        self.gone_p = self.rows[p * col.W + col.OFFLINE] != 0.0 or self.force
        if s < 0:
            self.rest[col.FA] = away
            self.spreads(col.FA, p, -1.0, 0.0, p, 0.0, 0.0)
            return
        self.gone_s = self.rows[s * col.W + col.OFFLINE] != 0.0 or self.force
        self.stays = (
            self.rows[p * col.W + col.FREE] > 0.0
            and self.rows[p * col.W + col.DISK] > 0.0
        )
        self.as_second = self.holds(i, p, 1.0, 1.0)
        self.rest[col.RF] = base + self.bear(i, s, 0.0, -1.0, self.here)
        # p is looked at anew, even where nothing changes.
        self.rest[col.R] = self.rest[col.RF] + self.bear(i, p, 0.0, 0.0, kept)
        self.spreads(col.R, p, 0.0, 0.0, s, 0.0, -1.0)
        # What p changes depends on the target, and so does s in FRF.
        self.spreads(col.RF, p, -1.0, 1.0, s, 0.0, -1.0)
        self.kept_d, self.kept_q = 0.0, 0.0
        self.leave_through(i, p, s, away)

    def leave_through(self, i, p, s, away):
        """Compute the same for the verbs that first fail over to the secondary."""
        verbs = self.verbs(i)
        self.through = False
        if (verbs >> col.FRF) & 3 == 0:
            return
        fit = self.runs(i, s, 1.0, self.here)
        if fit == 0 or (fit == 1 and not self.gone_p):
            return
        self.through = True
        self.as_again = self.holds(i, s, 0.0, 1.0)
        self.rest[col.FRF] = away
        self.spreads(col.FRF, p, -1.0, 0.0, s, 0.0, 0.0)
        self.rest[col.FR] = away + self.bear(i, s, 1.0, -1.0, self.here)
        self.spreads(col.FR, p, -1.0, 0.0, s, 1.0, -1.0)

    def amounts(self, i):
        """Note what an instance adds to each active metric, before scaling."""
        o = i * col.IW
        t = self.insts
        for a in range(self.actives):
            k = self.active[a]
            self.main[a], self.copies[a] = 0.0, 0.0
            if k == col.X_MEM:
                self.main[a] = -t[o + col.I_RUNS]
            elif k == col.X_MEM_ALL:
                self.main[a] = -t[o + col.I_MEM]
            elif k == col.X_CPU or k == col.X_CPU_ALL:
                self.main[a] = t[o + col.I_CPU]
            elif col.X_LOAD <= k <= col.X_LOAD + 3:
                self.main[a] = t[o + col.I_LOAD + k - col.X_LOAD]
                self.copies[a] = t[o + col.I_LOAD + 2] if k == col.X_LOAD + 2 else 0.0
            elif t[o + col.I_LOCAL] == 0.0:
                continue
            elif k == col.X_DISK or k == col.X_DISK_ALL:
                self.main[a] = self.copies[a] = -t[o + col.I_DISK]
            elif k == col.X_SPINDLES or k == col.X_SPINDLES_ALL:
                self.main[a] = self.copies[a] = t[o + col.I_SPINDLES]

    def spreads(self, verb, p, main_p, copy_p, s, main_s, copy_s):
        """Write d and q of the old nodes, the reserve as it was counted last."""
        o = verb * col.K
        self.old_d[o], self.old_q[o] = self.kept_d, self.kept_q
        for a in range(1, self.actives):
            d = main_p * self.main[a] + copy_p * self.copies[a]
            e = main_s * self.main[a] + copy_s * self.copies[a]
            d *= self.scales[p * col.K + a]
            e *= self.scales[s * col.K + a]
            self.old_d[o + a] = d + e
            self.old_q[o + a] = d * (self.twice_x[p * col.K + a] + d)
            self.old_q[o + a] += e * (self.twice_x[s * col.K + a] + e)

    def bear(self, i, j, main, copy, kept):
        """Return what a node adds to the counted parts of the score.

        The reserve, which becomes `kept`, is counted into `kept_d`, `kept_q`.
        """
        o = j * col.W
        r = self.rows
        found = 0.0
        if r[o + col.OFFLINE] != 0.0:
            return 16.0 * main + 4.0 * (main + copy)
        if r[o + col.FREE] - main * self.insts[i * col.IW + col.I_RUNS] <= kept:
            found = r[o + col.MAINS] + r[o + col.COPIES] + main + copy
        if r[o + col.UNSAFE] != 0.0:
            found -= r[o + col.MAINS] + r[o + col.COPIES]
        if kept != r[o + col.KEPT]:
            d = (kept - r[o + col.KEPT]) * self.scales[j * col.K]
            self.kept_d += d
            self.kept_q += d * (self.twice_x[j * col.K] + d)
            found += 0.25 * d
        if self.tags > 0 and main > 0.0:
            found += 2.0 * self.clashes(i, j)
        if self.tags > 0 and main < 0.0:
            found -= 2.0 * self.unclashes(i, j)
        return found

    # The two checks say 0: cannot be, 1: only if forced, 2: may be.

    def runs(self, i, j, freed, kept):
        """Say whether an instance may run on a node.

        Parameters
        ----------
        freed
            1 if its second copy leaves the node first, else 0.
        kept
            The node's reserve then.
        """
        o = j * col.W
        a = i * col.IW
        r = self.rows
        t = self.insts
        left = r[o + col.FREE] - t[a + col.I_RUNS]
        if left <= 0.0:
            return 0
        if (
            t[a + col.I_LOCAL] != 0.0
            and r[o + col.DISK] - (1.0 - freed) * t[a + col.I_DISK] <= 0.0
        ):
            return 0
        if left <= kept and (
            r[o + col.FREE] > kept if freed != 0.0 else r[o + col.UNSAFE] == 0.0
        ):
            return 1
        if r[o + col.RATIO] >= 0.0 and (
            r[o + col.RATIO] < (r[o + col.CPU] + t[a + col.I_CPU]) / r[o + col.CPUS]
            or r[o + col.RATIO]
            < (r[o + col.CPU_ALL] + t[a + col.I_CPU]) / r[o + col.CPUS]
        ):
            return 1
        if r[o + col.FREE_ALL] - t[a + col.I_MEM] <= 0.0:
            return 1
        if t[a + col.I_LOCAL] != 0.0 and not self.fits(a, o, 1.0 - freed):
            return 1
        return 1 if self.tags > 0 and self.clashes(i, j) > 0 else 2

    def fits(self, a, o, times):
        """Say whether a row has disk and spindles for so many times an instance."""
        r = self.rows
        disk = times * self.insts[a + col.I_DISK]
        spindles = times * self.insts[a + col.I_SPINDLES]
        return (
            r[o + col.DISK] - disk >= r[o + col.FLOOR]
            and r[o + col.SPINDLES] + spindles <= r[o + col.SPINDLE_LIMIT]
            and r[o + col.DISK_ALL] - disk > 0.0
            and r[o + col.DISK_ALL] - disk >= r[o + col.FLOOR]
            and r[o + col.SPINDLES_ALL] + spindles <= r[o + col.SPINDLE_LIMIT]
        )

    def holds(self, i, j, main, freed):
        """Say whether a node may keep the second copy, the reserve aside.

        Parameters
        ----------
        main
            1 if the instance ran there until now, else 0.
        freed
            1 if its disk was there until now, else 0.
        """
        o = j * col.W
        a = i * col.IW
        r = self.rows
        t = self.insts
        if r[o + col.DISK] - (1.0 - freed) * t[a + col.I_DISK] <= 0.0:
            return 0
        if t[a + col.I_KEEPS] >= r[o + col.FREE] + main * t[a + col.I_RUNS]:
            return 1
        if t[a + col.I_KEEPS] >= r[o + col.FREE_ALL] + main * t[a + col.I_MEM]:
            return 1
        return 2 if self.fits(a, o, 1.0 - freed) else 1

    def target(self, i, t):
        """Weigh all moves of an instance to one target; return the least score.

        `leave` was asked about the instance before.
        """
        o = t * col.W
        verbs = self.verbs(i)
        p = self.home(i)
        s = self.second(i)
        fit = 0
        least = col.HUGE
        if self.rows[o + col.OFFLINE] != 0.0 or t == p or t == s:
            return col.HUGE
        if verbs & 26:  # FA, RF, FRF: the target runs it
            fit = self.runs(i, t, 0.0, self.rows[o + col.KEPT])
        if fit > 0:
            more = self.bear(i, t, 1.0, 0.0, self.rows[o + col.KEPT])
            if verbs & 2 and (fit == 2 or self.gone_p):
                least = self.weigh_alone(i, t, more)
            if verbs & 8 and (fit == 2 or self.force):
                least = min(least, self.weigh_swap(i, t, p, more))
            if verbs & 16 and self.through and (fit == 2 or self.gone_p):
                least = min(least, self.weigh_again(i, t, s, more))
        if verbs & 36:  # R, FR: the target keeps the second copy
            fit = self.holds(i, t, 0.0, 0.0)
            if verbs & 4 and self.stays and fit > 0:
                least = min(least, self.weigh_copy(i, col.R, t, p, fit, self.gone_s))
            if verbs & 32 and self.through and fit > 0:
                least = min(least, self.weigh_copy(i, col.FR, t, s, fit, self.gone_p))
        return least

    def weigh_alone(self, i, t, more):
        """Return the score of FA."""
        self.kept_d, self.kept_q = 0.0, 0.0
        return self.weigh(i, col.FA, t, self.main, self.rest[col.FA] + more)

    def weigh_swap(self, i, t, p, more):
        """Return the score of RF, after which p keeps the second copy."""
        o = p * col.W
        a = i * col.IW
        before = self.rows[o + col.KEPT]
        left = self.rows[o + col.FREE] + self.insts[a + col.I_RUNS]
        kept = max(before, self.peers[p * self.n + t] + self.insts[a + col.I_KEEPS])
        if self.as_second == 0:
            return col.HUGE
        if not self.gone_s and (self.as_second == 1 or (before < left <= kept)):
            return col.HUGE
        self.kept_d = self.old_d[col.RF * col.K]
        self.kept_q = self.old_q[col.RF * col.K]
        more += self.bear(i, p, -1.0, 1.0, kept)
        return self.weigh(i, col.RF, t, self.main, self.rest[col.RF] + more)

    def weigh_again(self, i, t, s, more):
        """Return the score of FRF, after which s keeps the copy for t."""
        o = s * col.W
        a = i * col.IW
        left = self.rows[o + col.FREE]
        kept = self.peers[s * self.n + t] + self.insts[a + col.I_KEEPS]
        kept = max(self.here, kept)
        if self.as_again == 0:
            return col.HUGE
        if not self.gone_p and (self.as_again == 1 or (self.here < left <= kept)):
            return col.HUGE
        self.kept_d, self.kept_q = 0.0, 0.0
        more += self.bear(i, s, 0.0, 0.0, kept)
        return self.weigh(i, col.FRF, t, self.main, self.rest[col.FRF] + more)

    def weigh_copy(self, i, verb, t, home, fit, force):
        """Return the score of R or FR, after which t keeps the copy for `home`."""
        o = t * col.W
        a = i * col.IW
        left = self.rows[o + col.FREE]
        safe = self.rows[o + col.UNSAFE] == 0.0
        kept = self.peers[t * self.n + home] + self.insts[a + col.I_KEEPS]
        kept = max(self.rows[o + col.KEPT], kept)
        if not force and (fit == 1 or (safe and left <= kept)):
            return col.HUGE
        self.kept_d, self.kept_q = self.old_d[verb * col.K], self.old_q[verb * col.K]
        more = self.bear(i, t, 0.0, 1.0, kept)
        return self.weigh(i, verb, t, self.copies, self.rest[verb] + more)

    def weigh(self, i, verb, t, amounts, score):
        """Return the score of a candidate to about 1e-8; keep it if it is near.

        Parameters
        ----------
        amounts
            What comes to the target, before scaling.
        score
            The counted parts.
        """
        o = t * col.K
        g = verb * col.K
        d = self.kept_d
        q = self.kept_q
        online = self.online
        shrink = self.shrink
        # The compiler keeps locals in registers, and must read fields again.
        scales, twice_x = self.scales, self.twice_x
        old_d, old_q = self.old_d, self.old_q
        level_s, level_v, merged = self.level_s, self.level_v, self.merged
        widest, least = self.widest, self.least
        for a in range(self.actives):
            if a > 0:
                v = amounts[a] * scales[o + a]
                d = old_d[g + a] + v
                q = old_q[g + a] + v * (twice_x[o + a] + v)
            v = level_v[a] + (online * q - d * (level_s[a] + d)) * shrink
            v = v if v > 0.0 else 0.0
            d = d if d > 0.0 else -d
            widest[a] = d if d > widest[a] else widest[a]
            least[a] = v if v < least[a] else least[a]
            score += merged[a] * sqrt(v)
        self.keep(i, verb, t, score)
        return score
