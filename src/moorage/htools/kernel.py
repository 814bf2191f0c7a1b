# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The search for the best move, in numbers alone.

Plain Python that Cython can compile: compiled it is fast, as it is it is its
own reference. `moorage.htools.search` fills the arrays from a state and reads
the winner back; `moorage.htools.balancing.best_step` is the same search in the
words of nodes and instances.

Every spread metric keeps sum S and variance V. Changing nodes from x to y gives

    V' = V + (n q - 2 S d - d^2) / n^2,   d = sum(y - x),   q = sum(y^2 - x^2)

and d and q fall into a part of (primary, secondary) and a part of the target,
so a candidate costs O(1). Rounding makes that good to about 1e-8 only, hence
all candidates within `NEAR` of the best are scored again in full, in the order
of additions that defines the score.

An instance whose nodes did not change since it was scanned is not scanned
again while a bound forbids that it wins: each V' has moved by at most
``|dV| + 2 |dS| max|d| / n^2``, which bounds its score from below.
"""

# ruff: noqa: C901, ANN001, ANN201, ANN204, D102, ERA001, PLR0911, PLR1714
# ruff: noqa: SIM109, PLR0913, PLR0917, FURB136, PERF401 - the compiler wants plain C; the types stand in kernel.pyi

from array import array

import cython
from cython.cimports.libc.math import sqrt

W = cython.declare(cython.int, 26)
"""Columns of a node, in the order of `moorage.htools.search.node_columns`."""
IW = cython.declare(cython.int, 18)
"""Columns of an instance, in the order that the same module gives."""
K = cython.declare(cython.int, 13)
"""Spread metrics: memory, disk, reserve, processors, four loads, spindles; and
memory, disk, processors, spindles with planned instances."""
MEMO = cython.declare(cython.int, 55)
"""Columns of what is remembered of an instance: 3 + 4 K."""
NEAR = cython.declare(cython.double, 1e-7)
HUGE = cython.declare(cython.double, 1e300)
F = cython.declare(cython.int, 0)
FA = cython.declare(cython.int, 1)
R = cython.declare(cython.int, 2)
RF = cython.declare(cython.int, 3)
FRF = cython.declare(cython.int, 4)
FR = cython.declare(cython.int, 5)

compiled = cython.compiled


@cython.cfunc
def doubles(values: cython.double[::1]) -> cython.p_double:
    """Return where an array starts; the array itself when not compiled."""
    return cython.address(values[0]) if cython.compiled else values


@cython.cfunc
def integers(values: cython.int[::1]) -> cython.p_int:
    """Return where an array of integers starts, likewise."""
    return cython.address(values[0]) if cython.compiled else values


@cython.cclass
class Kernel:
    """Nodes and instances as rows of numbers, and the search over them.

    Attributes
    ----------
    n, m, tags : int
        Nodes in view, instances that may move, exclusion tags.
    rows : ((n + 6) * W,)
        Columns of each node, then six rows of scratch.
    insts : (m * IW,)
        Columns of each instance.
    peers : (n * n,)
        Memory that the first node keeps for instances of the second, MiB.
    tagged : (n * tags,)
        How many primaries of a node carry a tag.
    taglist : (any,)
        Tags of the instances, one after the other.
    active, merged : (a,)
        Spread metrics that differ, and the weight of each with its equals.
    """

    n = cython.declare(cython.int, visibility="public")
    m = cython.declare(cython.int, visibility="public")
    tags = cython.declare(cython.int)
    online = cython.declare(cython.double)
    shrink = cython.declare(cython.double)
    force = cython.declare(cython.bint)
    dirty = cython.declare(cython.bint)
    arrays = cython.declare(object)
    actives = cython.declare(cython.int)
    rows = cython.declare(cython.p_double)
    insts = cython.declare(cython.p_double)
    peers = cython.declare(cython.p_double)
    tagged = cython.declare(cython.p_double)
    taglist = cython.declare(cython.p_int)
    active = cython.declare(cython.p_int)
    merged = cython.declare(cython.p_double)
    x = cython.declare(cython.p_double)
    new = cython.declare(cython.p_double)
    sums = cython.declare(cython.p_double)
    variances = cython.declare(cython.p_double)
    memo = cython.declare(cython.p_double)
    near = cython.declare(cython.p_double)
    count = cython.declare(cython.int)
    room = cython.declare(cython.int)
    base = cython.declare(cython.double)
    conflicts = cython.declare(cython.double)
    off_all = cython.declare(cython.double)
    off_pri = cython.declare(cython.double)
    apart = cython.declare(cython.double)
    domains = cython.declare(cython.double)
    c_tags = cython.declare(cython.double)
    c_all = cython.declare(cython.double)
    c_pri = cython.declare(cython.double)
    n1 = cython.declare(cython.double)
    kept = cython.declare(cython.double)
    best = cython.declare(cython.double)
    above = cython.declare(cython.double)
    here = cython.declare(cython.double)
    widest = cython.declare(cython.p_double)
    least = cython.declare(cython.p_double)
    twice_x = cython.declare(cython.p_double)
    scales = cython.declare(cython.p_double)
    old_d = cython.declare(cython.p_double)
    old_q = cython.declare(cython.p_double)
    rest = cython.declare(cython.p_double)
    main = cython.declare(cython.p_double)
    copies = cython.declare(cython.p_double)
    level_s = cython.declare(cython.p_double)
    level_v = cython.declare(cython.p_double)
    kept_d = cython.declare(cython.double)
    kept_q = cython.declare(cython.double)
    gone_p = cython.declare(cython.bint)
    gone_s = cython.declare(cython.bint)
    stays = cython.declare(cython.bint)
    through = cython.declare(cython.bint)
    as_second = cython.declare(cython.int)
    as_again = cython.declare(cython.int)

    def __init__(self, arrays, n, m, tags, force):
        """Take the arrays in the order of `moorage.htools.search.arrays`."""
        self.n, self.m, self.tags, self.force = n, m, tags, force
        self.arrays = arrays
        self.room, self.actives = len(arrays[12]) // 4, len(arrays[5])
        self.rows, self.insts = doubles(arrays[0]), doubles(arrays[1])
        self.peers, self.tagged = doubles(arrays[2]), doubles(arrays[3])
        self.taglist, self.active = integers(arrays[4]), integers(arrays[5])
        self.merged, self.x = doubles(arrays[6]), doubles(arrays[7])
        self.new, self.sums = doubles(arrays[8]), doubles(arrays[9])
        self.variances, self.memo = doubles(arrays[10]), doubles(arrays[11])
        self.near, self.widest = doubles(arrays[12]), doubles(arrays[13])
        self.least = doubles(arrays[14])
        self.twice_x, self.scales = doubles(arrays[15]), doubles(arrays[16])
        self.old_d, self.old_q = doubles(arrays[17]), doubles(arrays[18])
        self.rest, self.main = doubles(arrays[19]), doubles(arrays[20])
        self.copies, self.level_s = doubles(arrays[21]), doubles(arrays[22])
        self.level_v = doubles(arrays[23])

    def prepare(self, fixed):
        """Compute values, sums and variances of the rows.

        Parameters
        ----------
        fixed
            Sums that are counted, not spread: conflicts, instances on offline
            nodes, primaries there, locations, domains.
        """
        self.conflicts, self.off_all, self.off_pri, self.apart, self.domains = fixed
        self.base = 2.0 * self.conflicts + 4.0 * self.off_all + 16.0 * self.off_pri
        self.base += self.apart + self.domains
        self.measure_all()

    def reset(self, fixed):
        """Take rows as they were put back; their sums are computed when asked for."""
        self.conflicts, self.off_all, self.off_pri, self.apart, self.domains = fixed
        self.dirty = True

    @cython.cfunc
    @cython.exceptval(check=False)
    def measure_all(self) -> cython.void:
        """Compute values, sums and variances."""
        j: cython.int
        k: cython.int
        self.n1, self.kept, self.online, self.dirty = 0.0, 0.0, 0.0, False
        for j in range(self.n):
            self.measure(j, self.x, j * K)
            if self.rows[j * W + 19] == 0.0:
                self.online += 1.0
                self.n1 += self.unsafe(j)
                self.kept += self.x[j * K + 2]
        self.shrink = 1.0 / (self.online * self.online)
        for k in range(K):
            self.spread(k)
        for j in range(self.n):
            self.scale(j)
        for k in range(self.actives):
            self.level_s[k] = 2.0 * self.sums[self.active[k]]
            self.level_v[k] = self.variances[self.active[k]]

    @cython.cfunc
    @cython.exceptval(check=False)
    def scale(self, j: cython.int) -> cython.void:
        """Note of each active metric twice its value, and what one unit changes.

        A node that is offline counts for nothing, so nothing changes there.
        """
        a: cython.int
        k: cython.int
        o: cython.int = j * K
        r = self.rows
        w: cython.int = j * W
        for a in range(self.actives):
            k = self.active[a]
            self.twice_x[o + a] = 2.0 * self.x[o + k]
            self.scales[o + a] = 1.0
            if r[w + 19] != 0.0:
                self.scales[o + a] = 0.0
            elif k == 0 or k == 2 or k == 9:
                self.scales[o + a] = 1.0 / r[w]
            elif k == 1 or k == 10:
                self.scales[o + a] = 1.0 / r[w + 5] if r[w + 5] != 0.0 else 0.0
            elif k == 3 or k == 11:
                self.scales[o + a] = 1.0 / (r[w + 8] * r[w + 9])
            elif k == 8 or k == 12:
                self.scales[o + a] = 1.0 / r[w + 12]

    @cython.cfunc
    @cython.exceptval(check=False)
    def spread(self, k: cython.int) -> cython.void:
        """Compute sum and variance of one metric."""
        j: cython.int
        s: cython.double = 0.0
        v: cython.double = 0.0
        d: cython.double
        for j in range(self.n):
            if self.rows[j * W + 19] == 0.0:
                s += self.x[j * K + k]
        for j in range(self.n):
            if self.rows[j * W + 19] == 0.0:
                d = self.x[j * K + k] - s / self.online
                v += d * d
        self.sums[k], self.variances[k] = s, v / self.online

    @cython.cfunc
    @cython.exceptval(check=False)
    def unsafe(self, j: cython.int) -> cython.double:
        """Return how many instances sit on a node that fails N+1."""
        o: cython.int = j * W
        if self.rows[o + 3] != 0.0:
            return self.rows[o + 17] + self.rows[o + 18]
        return 0.0

    @cython.cfunc
    @cython.exceptval(check=False)
    def measure(
        self, j: cython.int, into: cython.p_double, at: cython.int
    ) -> cython.void:
        """Write the spread metrics of a row."""
        o: cython.int = j * W
        r = self.rows
        mem: cython.double = r[o]
        into[at] = r[o + 1] / mem
        into[at + 1] = r[o + 4] / r[o + 5] if r[o + 5] != 0.0 else 1.0
        into[at + 2] = r[o + 2] / mem
        into[at + 3] = (r[o + 7] / r[o + 8]) / r[o + 9]
        into[at + 4] = r[o + 13]
        into[at + 5] = r[o + 14]
        into[at + 6] = r[o + 15]
        into[at + 7] = r[o + 16]
        into[at + 8] = r[o + 11] / r[o + 12]
        into[at + 9] = r[o + 20] / mem
        into[at + 10] = r[o + 21] / r[o + 5] if r[o + 5] != 0.0 else 1.0
        into[at + 11] = (r[o + 22] / r[o + 8]) / r[o + 9]
        into[at + 12] = r[o + 23] / r[o + 12]

    @cython.cfunc
    @cython.exceptval(check=False)
    def copy(self, src: cython.int, dst: cython.int) -> cython.void:
        """Copy a row."""
        c: cython.int
        for c in range(24):
            self.rows[dst * W + c] = self.rows[src * W + c]

    @cython.cfunc
    @cython.exceptval(check=False)
    def drop_primary(self, i: cython.int, row: cython.int) -> cython.void:
        """Take an instance off a row it runs on."""
        o: cython.int = row * W
        a: cython.int = i * IW
        r = self.rows
        t = self.insts
        r[o + 1] += t[a + 4]
        r[o + 3] = 1.0 if r[o + 1] <= r[o + 2] else 0.0
        r[o + 7] -= t[a + 2]
        r[o + 22] -= t[a + 2]
        r[o + 20] += t[a]
        r[o + 13] -= t[a + 9]
        r[o + 14] -= t[a + 10]
        r[o + 15] -= t[a + 11]
        r[o + 16] -= t[a + 12]
        r[o + 17] -= 1.0
        self.give(a, o)

    @cython.cfunc
    @cython.exceptval(check=False)
    def give(self, a: cython.int, o: cython.int) -> cython.void:
        """Give back the disk and spindles of an instance."""
        if self.insts[a + 6] != 0.0:
            self.rows[o + 4] += self.insts[a + 1]
            self.rows[o + 21] += self.insts[a + 1]
            self.rows[o + 11] -= self.insts[a + 3]
            self.rows[o + 23] -= self.insts[a + 3]

    @cython.cfunc
    @cython.exceptval(check=False)
    def take(self, a: cython.int, o: cython.int) -> cython.void:
        """Take the disk and spindles of an instance."""
        if self.insts[a + 6] != 0.0:
            self.rows[o + 4] -= self.insts[a + 1]
            self.rows[o + 21] -= self.insts[a + 1]
            self.rows[o + 11] += self.insts[a + 3]
            self.rows[o + 23] += self.insts[a + 3]

    @cython.cfunc
    @cython.exceptval(check=False)
    def drop_secondary(
        self, i: cython.int, row: cython.int, kept: cython.double
    ) -> cython.void:
        """Take the second copy off a row; `kept` is the reserve without it."""
        o: cython.int = row * W
        a: cython.int = i * IW
        self.rows[o + 2] = kept
        self.rows[o + 3] = 1.0 if self.rows[o + 1] <= kept else 0.0
        self.rows[o + 15] -= self.insts[a + 11]
        self.rows[o + 18] -= 1.0
        self.give(a, o)

    @cython.cfunc
    @cython.exceptval(check=False)
    def add_primary(
        self, i: cython.int, row: cython.int, node: cython.int, force: cython.bint
    ) -> cython.bint:
        """Run an instance on a row; say whether that is allowed."""
        o: cython.int = row * W
        a: cython.int = i * IW
        r = self.rows
        t = self.insts
        failed: cython.double = r[o + 3]
        r[o + 1] -= t[a + 4]
        r[o + 3] = 1.0 if r[o + 1] <= r[o + 2] else 0.0
        r[o + 7] += t[a + 2]
        r[o + 22] += t[a + 2]
        r[o + 20] -= t[a]
        r[o + 13] += t[a + 9]
        r[o + 14] += t[a + 10]
        r[o + 15] += t[a + 11]
        r[o + 16] += t[a + 12]
        r[o + 17] += 1.0
        self.take(a, o)
        if r[o + 1] <= 0.0:
            return False
        if t[a + 6] != 0.0 and r[o + 4] <= 0.0:
            return False
        if force:
            return True
        if r[o + 3] != 0.0 and failed == 0.0:
            return False
        if r[o + 10] >= 0.0 and (
            r[o + 10] < r[o + 7] / r[o + 8] or r[o + 10] < r[o + 22] / r[o + 8]
        ):
            return False
        if r[o + 20] <= 0.0:
            return False
        if t[a + 6] != 0.0 and not self.has_disk(o):
            return False
        return self.clashes(i, node) == 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def has_disk(self, o: cython.int) -> cython.bint:
        """Say whether floors and spindle limits are kept."""
        r = self.rows
        return (
            r[o + 4] >= r[o + 6]
            and r[o + 11] <= r[o + 12]
            and r[o + 21] > 0.0
            and r[o + 21] >= r[o + 6]
            and r[o + 23] <= r[o + 12]
        )

    @cython.cfunc
    @cython.exceptval(check=False)
    def clashes(self, i: cython.int, node: cython.int) -> cython.int:
        """Return how many exclusion tags of an instance a node has already."""
        c: cython.int
        a: cython.int = i * IW
        found: cython.int = 0
        start: cython.int = cython.cast(cython.int, self.insts[a + 15])
        for c in range(start, start + cython.cast(cython.int, self.insts[a + 16])):
            if self.tagged[node * self.tags + self.taglist[c]] > 0.0:
                found += 1
        return found

    @cython.cfunc
    @cython.exceptval(check=False)
    def unclashes(self, i: cython.int, node: cython.int) -> cython.int:
        """Return how many clashes end when an instance leaves a node."""
        c: cython.int
        a: cython.int = i * IW
        found: cython.int = 0
        start: cython.int = cython.cast(cython.int, self.insts[a + 15])
        for c in range(start, start + cython.cast(cython.int, self.insts[a + 16])):
            if self.tagged[node * self.tags + self.taglist[c]] > 1.0:
                found += 1
        return found

    @cython.cfunc
    @cython.exceptval(check=False)
    def add_secondary(
        self,
        i: cython.int,
        row: cython.int,
        peer: cython.double,
        force: cython.bint,
        there: cython.bint,
    ) -> cython.bint:
        """Keep the second copy on a row; `peer` is kept for its primary already."""
        o: cython.int = row * W
        a: cython.int = i * IW
        r = self.rows
        t = self.insts
        failed: cython.double = r[o + 3]
        r[o + 2] = max(r[o + 2], peer + t[a + 5])
        r[o + 3] = 1.0 if r[o + 1] <= r[o + 2] else 0.0
        r[o + 15] += t[a + 11]
        r[o + 18] += 1.0
        self.take(a, o)
        if not there and r[o + 4] <= 0.0:
            return False
        if force:
            return True
        if t[a + 5] >= r[o + 1] or t[a + 5] >= r[o + 20]:
            return False
        if r[o + 3] != 0.0 and failed == 0.0:
            return False
        return self.has_disk(o)

    @cython.cfunc
    @cython.exceptval(check=False)
    def reserve_without(self, i: cython.int) -> cython.double:
        """Return what the secondary keeps when the instance is gone."""
        a: cython.int = i * IW
        p: cython.int = cython.cast(cython.int, self.insts[a + 7])
        s: cython.int = cython.cast(cython.int, self.insts[a + 8])
        j: cython.int
        before: cython.double = self.peers[s * self.n + p]
        top: cython.double = before - self.insts[a + 5]
        if before < self.rows[s * W + 2]:
            return self.rows[s * W + 2]
        top = max(top, 0.0)
        for j in range(self.n):
            if j != p and self.peers[s * self.n + j] > top:
                top = self.peers[s * self.n + j]
        return top

    @cython.cfunc
    @cython.exceptval(check=False)
    def run(self, i: cython.int, verb: cython.int, t: cython.int) -> cython.bint:
        """Do a move on the scratch rows: p, s, t become rows n, n + 1, n + 2.

        Says whether the move is allowed.
        """
        a: cython.int = i * IW
        n: cython.int = self.n
        p: cython.int = cython.cast(cython.int, self.insts[a + 7])
        s: cython.int = cython.cast(cython.int, self.insts[a + 8])
        gone: cython.bint = self.rows[p * W + 19] != 0.0 or self.force
        self.copy(p, n)
        if verb == FA:
            self.copy(t, n + 2)
            self.drop_primary(i, n)
            return self.add_primary(i, n + 2, t, gone)
        self.copy(s, n + 1)
        if verb != F:
            self.copy(t, n + 2)
        self.drop_primary(i, n)
        self.drop_secondary(i, n + 1, self.here)
        if verb == F:
            return self.run_failover(i, p, s, gone)
        if verb == R or verb == RF:
            return self.run_replace(i, verb, t, p, s)
        return self.run_through(i, verb, t, s, gone)

    @cython.cfunc
    @cython.exceptval(check=False)
    def run_failover(
        self, i: cython.int, p: cython.int, s: cython.int, gone: cython.bint
    ) -> cython.bint:
        n: cython.int = self.n
        there: cython.bint = self.rows[p * W + 19] != 0.0
        if not self.add_primary(i, n + 1, s, gone):
            return False
        return self.add_secondary(i, n, self.peers[p * n + s], gone, there)

    @cython.cfunc
    @cython.exceptval(check=False)
    def run_replace(
        self,
        i: cython.int,
        verb: cython.int,
        t: cython.int,
        p: cython.int,
        s: cython.int,
    ) -> cython.bint:
        n: cython.int = self.n
        lost: cython.bint = self.rows[s * W + 19] != 0.0 or self.force
        if verb == R:
            if not self.add_secondary(i, n + 2, self.peers[t * n + p], lost, False):
                return False
            return self.add_primary(i, n, p, True)
        if not self.add_primary(i, n + 2, t, self.force):
            return False
        return self.add_secondary(i, n, self.peers[p * n + t], lost, False)

    @cython.cfunc
    @cython.exceptval(check=False)
    def run_through(
        self,
        i: cython.int,
        verb: cython.int,
        t: cython.int,
        s: cython.int,
        gone: cython.bint,
    ) -> cython.bint:
        """Do the moves that first fail over to the secondary."""
        n: cython.int = self.n
        if not self.add_primary(i, n + 1, s, gone):
            return False
        if verb == FR:
            return self.add_secondary(i, n + 2, self.peers[t * n + s], gone, False)
        if not self.add_primary(i, n + 2, t, gone):
            return False
        self.drop_primary(i, n + 1)
        return self.add_secondary(i, n + 1, self.peers[s * n + t], gone, False)

    @cython.cfunc
    @cython.exceptval(check=False)
    def change(
        self, i: cython.int, verb: cython.int, t: cython.int, exact: cython.bint
    ) -> cython.double:
        """Return the score after a move, quickly or to the digit; HUGE if refused."""
        a: cython.int = i * IW
        n: cython.int = self.n
        p: cython.int = cython.cast(cython.int, self.insts[a + 7])
        s: cython.int = cython.cast(cython.int, self.insts[a + 8])
        if not self.run(i, verb, t):
            return HUGE
        if verb == F:
            t = -1
        if verb == FA:
            s = -1
        self.count_fixed(i, verb, p, s, t)
        unsafe: cython.double = self.n1
        kept: cython.double = self.kept
        slot: cython.int
        node: cython.int
        for slot in range(3):
            node = p if slot == 0 else s if slot == 1 else t
            if node < 0 or self.rows[node * W + 19] != 0.0:
                continue
            self.measure(n + slot, self.new, slot * K)
            unsafe += self.unsafe(n + slot) - self.unsafe(node)
            kept += self.new[slot * K + 2] - self.x[node * K + 2]
        if exact:
            return self.exactly(p, s, t, unsafe)
        rest: cython.double = unsafe + 0.25 * kept + self.apart + self.domains
        rest += 2.0 * self.c_tags + 4.0 * self.c_all + 16.0 * self.c_pri
        return self.quickly(p, s, t, rest)

    @cython.cfunc
    @cython.exceptval(check=False)
    def count_fixed(
        self,
        i: cython.int,
        verb: cython.int,
        p: cython.int,
        s: cython.int,
        t: cython.int,
    ) -> cython.void:
        """Count conflicts, and instances on offline nodes, after a move."""
        home: cython.int = p if verb == R else s if verb == F or verb == FR else t
        self.c_tags, self.c_all, self.c_pri = self.conflicts, self.off_all, self.off_pri
        if verb != R and self.tags > 0:
            self.c_tags += self.clashes(i, home)
            if self.rows[p * W + 19] == 0.0:
                self.c_tags -= self.unclashes(i, p)
        if self.rows[p * W + 19] != 0.0 and verb != R:
            self.c_pri -= 1.0
            if verb != F and verb != RF:
                self.c_all -= 1.0
        if s >= 0 and self.rows[s * W + 19] != 0.0:
            if verb == R or verb == RF:
                self.c_all -= 1.0
            elif verb != FRF:
                self.c_pri += 1.0

    @cython.cfunc
    @cython.exceptval(check=False)
    def quickly(
        self,
        p: cython.int,
        s: cython.int,
        t: cython.int,
        rest: cython.double,
    ) -> cython.double:
        """Return the score from changed sums; HUGE once it cannot win."""
        a: cython.int
        k: cython.int
        d: cython.double
        q: cython.double
        v: cython.double
        x = self.x
        new = self.new
        use_p: cython.bint = self.rows[p * W + 19] == 0.0
        use_s: cython.bint = s >= 0 and self.rows[s * W + 19] == 0.0
        for a in range(self.actives):
            k = self.active[a]
            d = 0.0
            q = 0.0
            if use_p:
                d = new[k] - x[p * K + k]
                q = d * (new[k] + x[p * K + k])
            if use_s:
                v = new[K + k] - x[s * K + k]
                d += v
                q += v * (new[K + k] + x[s * K + k])
            if t >= 0:
                v = new[2 * K + k] - x[t * K + k]
                d += v
                q += v * (new[2 * K + k] + x[t * K + k])
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

    @cython.cfunc
    @cython.exceptval(check=False)
    def exactly(
        self, p: cython.int, s: cython.int, t: cython.int, unsafe: cython.double
    ) -> cython.double:
        """Return the score of the changed rows, in the order that defines it."""
        score: cython.double = 0.0
        score += self.deviation(0, p, s, t) * 0.5
        score += self.deviation(1, p, s, t) * 0.5
        score += unsafe
        score += self.deviation(2, p, s, t)
        score += self.c_all * 4.0
        score += self.c_pri * 16.0
        score += self.deviation(3, p, s, t) * 0.5
        score += self.deviation(4, p, s, t)
        score += self.deviation(5, p, s, t)
        score += self.deviation(6, p, s, t)
        score += self.deviation(7, p, s, t)
        score += self.c_tags * 2.0
        score += self.deviation(8, p, s, t) * 0.5
        score += self.deviation(9, p, s, t) * 0.5
        score += self.deviation(10, p, s, t) * 0.5
        score += self.deviation(11, p, s, t) * 0.5
        score += self.deviation(12, p, s, t) * 0.5
        score += self.apart
        score += self.domains
        return score + self.added(2, p, s, t) * 0.25

    @cython.cfunc
    @cython.exceptval(check=False)
    def value(
        self,
        j: cython.int,
        k: cython.int,
        p: cython.int,
        s: cython.int,
        t: cython.int,
    ) -> cython.double:
        """Return a metric of a node after the move on the scratch rows."""
        if j == p:
            return self.new[k]
        if j == s:
            return self.new[K + k]
        if j == t:
            return self.new[2 * K + k]
        return self.x[j * K + k]

    @cython.cfunc
    @cython.exceptval(check=False)
    def added(
        self, k: cython.int, p: cython.int, s: cython.int, t: cython.int
    ) -> cython.double:
        """Return the sum of a metric after the move."""
        j: cython.int
        found: cython.double = 0.0
        for j in range(self.n):
            if self.rows[j * W + 19] == 0.0:
                found += self.value(j, k, p, s, t)
        return found

    @cython.cfunc
    @cython.exceptval(check=False)
    def deviation(
        self, k: cython.int, p: cython.int, s: cython.int, t: cython.int
    ) -> cython.double:
        """Return the spread of a metric after the move."""
        j: cython.int
        off: cython.double
        found: cython.double = 0.0
        mean: cython.double = self.added(k, p, s, t) / self.online
        for j in range(self.n):
            if self.rows[j * W + 19] == 0.0:
                off = self.value(j, k, p, s, t) - mean
                found += off * off
        return sqrt(found / self.online)

    def current(self):
        """Return the score of the rows as they are."""
        self.c_tags, self.c_all, self.c_pri = self.conflicts, self.off_all, self.off_pri
        return self.exactly(-1, -1, -1, self.n1)

    @cython.cfunc
    @cython.exceptval(check=False)
    def offer(self, i: cython.int, verb: cython.int, t: cython.int) -> cython.double:
        """Score a candidate on scratch rows, and keep it if it is near the best."""
        found: cython.double = self.change(i, verb, t, False)
        self.keep(i, verb, t, found)
        return found

    @cython.cfunc
    @cython.exceptval(check=False)
    def keep(
        self, i: cython.int, verb: cython.int, t: cython.int, found: cython.double
    ) -> cython.void:
        """Keep a candidate if it is near the best."""
        if found <= self.above or found >= self.best + NEAR:
            return
        self.best = min(self.best, found)
        if self.count == self.room:
            self.weed()
        if self.count < self.room:
            self.near[4 * self.count] = i
            self.near[4 * self.count + 1] = verb
            self.near[4 * self.count + 2] = t
            self.near[4 * self.count + 3] = found
            self.count += 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def weed(self) -> cython.void:
        """Drop kept candidates that are no longer near."""
        c: cython.int
        b: cython.int
        left: cython.int = 0
        for c in range(self.count):
            if self.near[4 * c + 3] < self.best + NEAR:
                for b in range(4):
                    self.near[4 * left + b] = self.near[4 * c + b]
                left += 1
        self.count = left

    # A verb changes how many primaries and second copies the old nodes and the target
    # have of an instance:
    #
    #         p: main copy   s: main copy   t: main copy
    #   FA         -1   .           .   .          1   .
    #   R           .   .           .  -1          .   1
    #   RF         -1   1           .  -1          1   .
    #   FRF        -1   .           .   .          1   .
    #   FR         -1   .           1  -1          .   1
    #
    # Every metric but the reserve changes by a multiple of that. `leave` computes once
    # for an instance what the old nodes change, `target` adds a target.

    @cython.cfunc
    @cython.exceptval(check=False)
    def leave(self, i: cython.int) -> cython.void:
        """Compute what each verb changes on the old nodes of an instance."""
        a: cython.int = i * IW
        p: cython.int = cython.cast(cython.int, self.insts[a + 7])
        s: cython.int = cython.cast(cython.int, self.insts[a + 8])
        base: cython.double = self.constant()
        kept: cython.double = self.rows[p * W + 2]
        away: cython.double
        self.amounts(i)
        self.kept_d, self.kept_q = 0.0, 0.0
        away = base + self.bear(i, p, -1.0, 0.0, kept)
        self.gone_p = self.rows[p * W + 19] != 0.0 or self.force
        if s < 0:
            self.rest[FA] = away
            self.spreads(FA, p, -1.0, 0.0, p, 0.0, 0.0)
            return
        self.gone_s = self.rows[s * W + 19] != 0.0 or self.force
        self.stays = self.rows[p * W + 1] > 0.0 and self.rows[p * W + 4] > 0.0
        self.as_second = self.holds(i, p, 1.0, 1.0)
        self.rest[RF] = base + self.bear(i, s, 0.0, -1.0, self.here)
        # p is looked at anew, even where nothing changes.
        self.rest[R] = self.rest[RF] + self.bear(i, p, 0.0, 0.0, kept)
        self.spreads(R, p, 0.0, 0.0, s, 0.0, -1.0)
        # What p changes depends on the target, and so does s in FRF.
        self.spreads(RF, p, -1.0, 1.0, s, 0.0, -1.0)
        self.kept_d, self.kept_q = 0.0, 0.0
        self.leave_through(i, p, s, away)

    @cython.cfunc
    @cython.exceptval(check=False)
    def leave_through(
        self, i: cython.int, p: cython.int, s: cython.int, away: cython.double
    ) -> cython.void:
        """Compute the same for the verbs that first fail over to the secondary."""
        verbs: cython.int = cython.cast(cython.int, self.insts[i * IW + 17])
        fit: cython.int
        self.through = False
        if (verbs >> FRF) & 3 == 0:
            return
        fit = self.runs(i, s, 1.0, self.here)
        if fit == 0 or (fit == 1 and not self.gone_p):
            return
        self.through = True
        self.as_again = self.holds(i, s, 0.0, 1.0)
        self.rest[FRF] = away
        self.spreads(FRF, p, -1.0, 0.0, s, 0.0, 0.0)
        self.rest[FR] = away + self.bear(i, s, 1.0, -1.0, self.here)
        self.spreads(FR, p, -1.0, 0.0, s, 1.0, -1.0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def amounts(self, i: cython.int) -> cython.void:
        """Note what an instance adds to each active metric, before scaling."""
        a: cython.int
        k: cython.int
        o: cython.int = i * IW
        t = self.insts
        for a in range(self.actives):
            k = self.active[a]
            self.main[a], self.copies[a] = 0.0, 0.0
            if k == 0:
                self.main[a] = -t[o + 4]
            elif k == 9:
                self.main[a] = -t[o]
            elif k == 3 or k == 11:
                self.main[a] = t[o + 2]
            elif 4 <= k <= 7:
                self.main[a] = t[o + 5 + k]
                self.copies[a] = t[o + 11] if k == 6 else 0.0
            elif t[o + 6] == 0.0:
                continue
            elif k == 1 or k == 10:
                self.main[a] = self.copies[a] = -t[o + 1]
            elif k == 8 or k == 12:
                self.main[a] = self.copies[a] = t[o + 3]

    @cython.cfunc
    @cython.exceptval(check=False)
    def spreads(
        self,
        verb: cython.int,
        p: cython.int,
        main_p: cython.double,
        copy_p: cython.double,
        s: cython.int,
        main_s: cython.double,
        copy_s: cython.double,
    ) -> cython.void:
        """Write d and q of the old nodes, the reserve as it was counted last."""
        a: cython.int
        o: cython.int = verb * K
        d: cython.double
        e: cython.double
        self.old_d[o], self.old_q[o] = self.kept_d, self.kept_q
        for a in range(1, self.actives):
            d = main_p * self.main[a] + copy_p * self.copies[a]
            e = main_s * self.main[a] + copy_s * self.copies[a]
            d *= self.scales[p * K + a]
            e *= self.scales[s * K + a]
            self.old_d[o + a] = d + e
            self.old_q[o + a] = d * (self.twice_x[p * K + a] + d)
            self.old_q[o + a] += e * (self.twice_x[s * K + a] + e)

    @cython.cfunc
    @cython.exceptval(check=False)
    def bear(
        self,
        i: cython.int,
        j: cython.int,
        main: cython.double,
        copy: cython.double,
        kept: cython.double,
    ) -> cython.double:
        """Return what a node adds to the counted parts of the score.

        The reserve, which becomes `kept`, is counted into `kept_d`, `kept_q`.
        """
        o: cython.int = j * W
        r = self.rows
        d: cython.double
        found: cython.double = 0.0
        if r[o + 19] != 0.0:
            return 16.0 * main + 4.0 * (main + copy)
        if r[o + 1] - main * self.insts[i * IW + 4] <= kept:
            found = r[o + 17] + r[o + 18] + main + copy
        if r[o + 3] != 0.0:
            found -= r[o + 17] + r[o + 18]
        if kept != r[o + 2]:
            d = (kept - r[o + 2]) * self.scales[j * K]
            self.kept_d += d
            self.kept_q += d * (self.twice_x[j * K] + d)
            found += 0.25 * d
        if self.tags > 0 and main > 0.0:
            found += 2.0 * self.clashes(i, j)
        if self.tags > 0 and main < 0.0:
            found -= 2.0 * self.unclashes(i, j)
        return found

    # The two checks say 0: cannot be, 1: only if forced, 2: may be.

    @cython.cfunc
    @cython.exceptval(check=False)
    def runs(
        self, i: cython.int, j: cython.int, freed: cython.double, kept: cython.double
    ) -> cython.int:
        """Say whether an instance may run on a node.

        Parameters
        ----------
        freed
            1 if its second copy leaves the node first, else 0.
        kept
            The node's reserve then.
        """
        o: cython.int = j * W
        a: cython.int = i * IW
        r = self.rows
        t = self.insts
        left: cython.double = r[o + 1] - t[a + 4]
        if left <= 0.0:
            return 0
        if t[a + 6] != 0.0 and r[o + 4] - (1.0 - freed) * t[a + 1] <= 0.0:
            return 0
        if left <= kept and (r[o + 1] > kept if freed != 0.0 else r[o + 3] == 0.0):
            return 1
        if r[o + 10] >= 0.0 and (
            r[o + 10] < (r[o + 7] + t[a + 2]) / r[o + 8]
            or r[o + 10] < (r[o + 22] + t[a + 2]) / r[o + 8]
        ):
            return 1
        if r[o + 20] - t[a] <= 0.0:
            return 1
        if t[a + 6] != 0.0 and not self.fits(a, o, 1.0 - freed):
            return 1
        return 1 if self.tags > 0 and self.clashes(i, j) > 0 else 2

    @cython.cfunc
    @cython.exceptval(check=False)
    def fits(self, a: cython.int, o: cython.int, times: cython.double) -> cython.bint:
        """Say whether a row has disk and spindles for so many times an instance."""
        r = self.rows
        disk: cython.double = times * self.insts[a + 1]
        spindles: cython.double = times * self.insts[a + 3]
        return (
            r[o + 4] - disk >= r[o + 6]
            and r[o + 11] + spindles <= r[o + 12]
            and r[o + 21] - disk > 0.0
            and r[o + 21] - disk >= r[o + 6]
            and r[o + 23] + spindles <= r[o + 12]
        )

    @cython.cfunc
    @cython.exceptval(check=False)
    def holds(
        self,
        i: cython.int,
        j: cython.int,
        main: cython.double,
        freed: cython.double,
    ) -> cython.int:
        """Say whether a node may keep the second copy, the reserve aside.

        Parameters
        ----------
        main
            1 if the instance ran there until now, else 0.
        freed
            1 if its disk was there until now, else 0.
        """
        o: cython.int = j * W
        a: cython.int = i * IW
        r = self.rows
        t = self.insts
        if r[o + 4] - (1.0 - freed) * t[a + 1] <= 0.0:
            return 0
        if t[a + 5] >= r[o + 1] + main * t[a + 4]:
            return 1
        if t[a + 5] >= r[o + 20] + main * t[a]:
            return 1
        return 2 if self.fits(a, o, 1.0 - freed) else 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def target(self, i: cython.int, t: cython.int) -> cython.double:
        """Weigh all moves of an instance to one target; return the least score.

        `leave` was asked about the instance before.
        """
        a: cython.int = i * IW
        o: cython.int = t * W
        verbs: cython.int = cython.cast(cython.int, self.insts[a + 17])
        p: cython.int = cython.cast(cython.int, self.insts[a + 7])
        s: cython.int = cython.cast(cython.int, self.insts[a + 8])
        fit: cython.int = 0
        more: cython.double
        least: cython.double = HUGE
        if self.rows[o + 19] != 0.0 or t == p or t == s:
            return HUGE
        if verbs & 26:  # FA, RF, FRF: the target runs it
            fit = self.runs(i, t, 0.0, self.rows[o + 2])
        if fit > 0:
            more = self.bear(i, t, 1.0, 0.0, self.rows[o + 2])
            if verbs & 2 and (fit == 2 or self.gone_p):
                least = self.weigh_alone(i, t, more)
            if verbs & 8 and (fit == 2 or self.force):
                least = min(least, self.weigh_swap(i, t, p, more))
            if verbs & 16 and self.through and (fit == 2 or self.gone_p):
                least = min(least, self.weigh_again(i, t, s, more))
        if verbs & 36:  # R, FR: the target keeps the second copy
            fit = self.holds(i, t, 0.0, 0.0)
            if verbs & 4 and self.stays and fit > 0:
                least = min(least, self.weigh_copy(i, R, t, p, fit, self.gone_s))
            if verbs & 32 and self.through and fit > 0:
                least = min(least, self.weigh_copy(i, FR, t, s, fit, self.gone_p))
        return least

    @cython.cfunc
    @cython.exceptval(check=False)
    def weigh_alone(
        self, i: cython.int, t: cython.int, more: cython.double
    ) -> cython.double:
        """Return the score of FA."""
        self.kept_d, self.kept_q = 0.0, 0.0
        return self.weigh(i, FA, t, self.main, self.rest[FA] + more)

    @cython.cfunc
    @cython.exceptval(check=False)
    def weigh_swap(
        self, i: cython.int, t: cython.int, p: cython.int, more: cython.double
    ) -> cython.double:
        """Return the score of RF, after which p keeps the second copy."""
        o: cython.int = p * W
        a: cython.int = i * IW
        before: cython.double = self.rows[o + 2]
        left: cython.double = self.rows[o + 1] + self.insts[a + 4]
        kept: cython.double = max(
            before, self.peers[p * self.n + t] + self.insts[a + 5]
        )
        if self.as_second == 0:
            return HUGE
        if not self.gone_s and (self.as_second == 1 or (before < left <= kept)):
            return HUGE
        self.kept_d, self.kept_q = self.old_d[RF * K], self.old_q[RF * K]
        more += self.bear(i, p, -1.0, 1.0, kept)
        return self.weigh(i, RF, t, self.main, self.rest[RF] + more)

    @cython.cfunc
    @cython.exceptval(check=False)
    def weigh_again(
        self, i: cython.int, t: cython.int, s: cython.int, more: cython.double
    ) -> cython.double:
        """Return the score of FRF, after which s keeps the copy for t."""
        o: cython.int = s * W
        a: cython.int = i * IW
        left: cython.double = self.rows[o + 1]
        kept: cython.double = self.peers[s * self.n + t] + self.insts[a + 5]
        kept = max(self.here, kept)
        if self.as_again == 0:
            return HUGE
        if not self.gone_p and (self.as_again == 1 or (self.here < left <= kept)):
            return HUGE
        self.kept_d, self.kept_q = 0.0, 0.0
        more += self.bear(i, s, 0.0, 0.0, kept)
        return self.weigh(i, FRF, t, self.main, self.rest[FRF] + more)

    @cython.cfunc
    @cython.exceptval(check=False)
    def weigh_copy(
        self,
        i: cython.int,
        verb: cython.int,
        t: cython.int,
        home: cython.int,
        fit: cython.int,
        force: cython.bint,
    ) -> cython.double:
        """Return the score of R or FR, after which t keeps the copy for `home`."""
        o: cython.int = t * W
        a: cython.int = i * IW
        more: cython.double
        left: cython.double = self.rows[o + 1]
        safe: cython.bint = self.rows[o + 3] == 0.0
        kept: cython.double = self.peers[t * self.n + home] + self.insts[a + 5]
        kept = max(self.rows[o + 2], kept)
        if not force and (fit == 1 or (safe and left <= kept)):
            return HUGE
        self.kept_d, self.kept_q = self.old_d[verb * K], self.old_q[verb * K]
        more = self.bear(i, t, 0.0, 1.0, kept)
        return self.weigh(i, verb, t, self.copies, self.rest[verb] + more)

    @cython.cfunc
    @cython.exceptval(check=False)
    def weigh(
        self,
        i: cython.int,
        verb: cython.int,
        t: cython.int,
        amounts: cython.p_double,
        score: cython.double,
    ) -> cython.double:
        """Return the score of a candidate to about 1e-8; keep it if it is near.

        Parameters
        ----------
        amounts
            What comes to the target, before scaling.
        score
            The counted parts.
        """
        a: cython.int
        o: cython.int = t * K
        g: cython.int = verb * K
        d: cython.double = self.kept_d
        q: cython.double = self.kept_q
        v: cython.double
        online: cython.double = self.online
        shrink: cython.double = self.shrink
        # The compiler keeps locals in registers, and must read fields again.
        scales, twice_x, old_d, old_q = (
            self.scales,
            self.twice_x,
            self.old_d,
            self.old_q,
        )
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

    @cython.cfunc
    @cython.exceptval(check=False)
    def scan(self, i: cython.int) -> cython.void:
        """Weigh all moves of an instance, and note what bounds them."""
        a: cython.int
        t: cython.int
        least: cython.double = HUGE
        found: cython.double
        for a in range(self.actives):
            self.widest[a] = 0.0
            self.least[a] = HUGE
        self.reserve(i)
        if cython.cast(cython.int, self.insts[i * IW + 17]) & 1:
            least = self.offer(i, F, -1)
        self.leave(i)
        for t in range(self.n):
            found = self.target(i, t)
            least = min(least, found)
        self.note(i, least)

    @cython.cfunc
    @cython.exceptval(check=False)
    def reserve(self, i: cython.int) -> cython.void:
        """Compute the reserve of the secondary without the instance."""
        self.here = self.reserve_without(i) if self.insts[i * IW + 8] >= 0.0 else 0.0

    @cython.cfunc
    @cython.exceptval(check=False)
    def note(self, i: cython.int, least: cython.double) -> cython.void:
        """Remember the least score of an instance, and what bounds it later."""
        a: cython.int
        o: cython.int = i * MEMO
        self.memo[o] = 1.0
        self.memo[o + 1] = least
        self.memo[o + 2] = self.constant()
        for a in range(self.actives):
            self.memo[o + 3 + a] = self.level_s[a]
            self.memo[o + 3 + K + a] = self.level_v[a]
            self.memo[o + 3 + 2 * K + a] = self.widest[a]
            self.memo[o + 3 + 3 * K + a] = self.least[a]

    @cython.cfunc
    @cython.exceptval(check=False)
    def constant(self) -> cython.double:
        """Return the part of the score that is no spread."""
        return self.base + self.n1 + 0.25 * self.kept

    @cython.cfunc
    @cython.exceptval(check=False)
    def recall(self, i: cython.int) -> cython.double:
        """Return a bound on the scores of an instance that was not touched."""
        a: cython.int
        o: cython.int = i * MEMO
        drop: cython.double
        low: cython.double
        bound: cython.double = self.memo[o + 1] + self.constant() - self.memo[o + 2]
        for a in range(self.actives):
            self.widest[a] = self.memo[o + 3 + 2 * K + a]
            self.least[a] = self.memo[o + 3 + 3 * K + a]
            # `level_s` is twice the sum, as the bound wants it.
            drop = self.level_s[a] - self.memo[o + 3 + a]
            if drop < 0.0:
                drop = -drop
            drop *= self.widest[a] * self.shrink
            drop += self.memo[o + 3 + K + a] - self.level_v[a]
            # Rounding may move a variance a little more than that.
            drop += 1e-15 * self.level_v[a]
            if drop > 0.0 and self.least[a] < HUGE:
                # sqrt(v) - sqrt(max(v - drop, 0)) is largest at v = drop, and v is at
                # least self.least[a].
                low = max(self.least[a], drop)
                bound -= self.merged[a] * (sqrt(low) - sqrt(low - drop))
                self.least[a] = max(self.least[a] - drop, 0.0)
        return bound

    def find(self, current, above, fresh, touched):
        """Return the best move as (score, instance, verb, target), or None.

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
        self.best, self.above, self.count = current, above, 0
        marks = array("i", bytes(4 * self.n))
        for node in touched:
            marks[node] = 1
        changed = array("i", touched)
        changed.append(-1)
        marked: cython.p_int = integers(marks)
        news: cython.p_int = integers(changed)
        late = array("i", bytes(4 * self.m + 4))
        waiting: cython.p_int = integers(late)
        kept: cython.int = 0
        for i in range(self.m):
            if fresh or self.stale(i, marked):
                self.scan(i)
            else:
                self.freshen(i, news)
                waiting[kept] = i
                kept += 1
        self.scan_late(waiting, kept)
        return self.winner(current)

    @cython.cfunc
    def scan_late(self, waiting: cython.p_int, count: cython.int):
        """Scan the instances whose bound does not forbid that they win, best first."""
        c: cython.int
        near = []
        for c in range(count):
            if self.memo[waiting[c] * MEMO + 1] <= self.best + NEAR:
                near.append((self.memo[waiting[c] * MEMO + 1], waiting[c]))
        for bound, i in sorted(near):
            if bound > self.best + NEAR:
                break
            self.scan(i)

    @cython.cfunc
    @cython.exceptval(check=False)
    def stale(self, i: cython.int, marks: cython.p_int) -> cython.bint:
        """Say whether an instance must be scanned in full."""
        o: cython.int = i * IW
        p: cython.int = cython.cast(cython.int, self.insts[o + 7])
        s: cython.int = cython.cast(cython.int, self.insts[o + 8])
        if self.memo[i * MEMO] == 0.0 or marks[p] != 0:
            return True
        return s >= 0 and marks[s] != 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def freshen(self, i: cython.int, touched: cython.p_int) -> cython.void:
        """Bring a bound up to date with targets that changed; -1 ends them."""
        c: cython.int = 0
        bound: cython.double = self.recall(i)
        found: cython.double
        self.reserve(i)
        self.leave(i)
        while touched[c] >= 0:
            found = self.target(i, touched[c])
            bound = min(bound, found)
            c += 1
        self.note(i, bound)

    def winner(self, current):
        """Return the first of the best among the candidates that are near."""
        best = None
        for c in range(self.count):
            if self.near[4 * c + 3] >= self.best + NEAR:
                continue
            i = int(self.near[4 * c])
            verb = int(self.near[4 * c + 1])
            t = int(self.near[4 * c + 2])
            self.reserve(i)
            score = self.change(i, verb, t, True)
            found = (score, i, 0 if verb == F else 1 + t, verb, t)
            if score < current and (best is None or found < best):
                best = found
        return None if best is None else (best[0], best[1], best[3], best[4])

    def all_near(self, current):
        """Return every candidate near the best with its exact score."""
        found = []
        for c in range(self.count):
            i = int(self.near[4 * c])
            verb = int(self.near[4 * c + 1])
            t = int(self.near[4 * c + 2])
            self.reserve(i)
            score = self.change(i, verb, t, True)
            if score < current and self.near[4 * c + 3] < self.best + NEAR:
                found.append((score, i, verb, t))
        return found

    def band(self):
        """Return the score up to which candidates were looked at closely."""
        return self.best + NEAR

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
            if score < bound + NEAR:
                score = self.change(i, verb, t, True)
                bound = min(bound, score)
            found.append(score)
        return found

    # What follows places one instance: after a loss, or a new one.

    def restart(self, i, lost):
        """Restart an instance of a lost node elsewhere; return where, or -1.

        The rows change accordingly. Every check but the hard ones is skipped;
        ties go to the last node.
        """
        verbs: cython.int = int(self.insts[i * IW + 17])
        verb: cython.int = F if verbs & 1 else FA
        best: cython.int = -1
        least: cython.double = HUGE
        score: cython.double
        t: cython.int
        self.force = True
        self.reserve(i)
        if verb == F:
            t = int(self.insts[i * IW + 8])
            if self.rows[t * W + 19] != 0.0 or not self.run(i, F, -1):
                return -1
            self.commit(i, F, -1)
            return t
        if self.dirty:
            self.measure_all()
        self.best, self.above, self.count = HUGE, -HUGE, 0
        self.leave(i)
        for t in range(self.n):
            if t != lost:
                self.target(i, t)
        self.weed()
        best = int(self.near[2]) if self.count == 1 else -1
        for c in range(self.count if best < 0 else 0):
            t = int(self.near[4 * c + 2])
            score = self.change(i, FA, t, True)
            if not least < score:
                best, least = t, score
        if best >= 0:
            self.change(i, FA, best, False)
            self.commit(i, FA, best)
        return best

    def lose(self, order, lost):
        """Restart instances of a lost node in order; say whether all find room."""
        needs = [self.insts[i * IW + 4] for i in order]
        bounded = [self.needs_memory_alone(i) for i in order]
        rest: cython.double = sum(needs)
        certain: cython.bint = False
        at: cython.int
        verdict: cython.int
        for at in range(len(order)):
            if not certain:
                certain = all(bounded[at:])
                largest = max(needs[at:])
            elif needs[at - 1] == largest:
                largest = max(needs[at:])
            if certain:
                verdict = self.foresee(lost, rest, largest)
                if verdict != 0:
                    return verdict > 0
            if self.restart(order[at], lost) < 0:
                return False
            rest -= needs[at]
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def needs_memory_alone(self, i: cython.int) -> cython.bint:
        """Say whether an instance may restart wherever there is memory for it."""
        verbs: cython.int = cython.cast(cython.int, self.insts[i * IW + 17])
        return (verbs & 1) == 0 and self.insts[i * IW + 6] == 0.0

    @cython.cfunc
    @cython.exceptval(check=False)
    def foresee(
        self, lost: cython.int, rest: cython.double, largest: cython.double
    ) -> cython.int:
        """Return 1 when all are sure to find memory, -1 when some will not, else 0.

        Who is placed somewhere takes memory from `free`, the sum over the
        refuges. An instance is stranded when no refuge has more than it needs;
        then `free` is at most that many times its need.
        """
        t: cython.int
        refuges: cython.double = 0.0
        free: cython.double = 0.0
        top: cython.double = 0.0
        for t in range(self.n):
            if t != lost and self.rows[t * W + 19] == 0.0:
                refuges += 1.0
                if self.rows[t * W + 1] > 0.0:
                    free += self.rows[t * W + 1]
                    top = max(top, self.rows[t * W + 1])
        if largest >= top or rest >= free:
            return -1
        return 1 if free - (rest - largest) > refuges * largest else 0

    def anew(self, i, places):
        """Make an instance anew on the best of some nodes; return where, or -1.

        Its old place keeps what it had there: the node is lost anyway.
        """
        best: cython.int = -1
        least: cython.double = HUGE
        score: cython.double
        t: cython.int
        if self.dirty:
            self.measure_all()
        for place in places:
            t = place
            self.copy(t, self.n + 2)
            if not self.add_primary(i, self.n + 2, t, True):
                continue
            score = self.alone(i, t)
            if not least < score:
                best, least = t, score
        if best >= 0:
            self.copy(best, self.n + 2)
            self.add_primary(i, self.n + 2, best, True)
            self.alone(i, best)
            self.conflicts = self.c_tags
            self.mark(i, best, 1.0)
            self.copy(self.n + 2, best)
            self.dirty = True
        return best

    @cython.cfunc
    @cython.exceptval(check=False)
    def alone(self, i: cython.int, t: cython.int) -> cython.double:
        """Return the score with one more instance on a node."""
        n: cython.int = self.n
        self.measure(n + 2, self.new, 2 * K)
        self.c_all, self.c_pri, self.c_tags = self.off_all, self.off_pri, self.conflicts
        if self.tags > 0:
            self.c_tags += self.clashes(i, t)
        return self.exactly(-1, -1, t, self.n1 + self.unsafe(n + 2) - self.unsafe(t))

    @cython.cfunc
    @cython.exceptval(check=False)
    def mark(self, i: cython.int, node: cython.int, by: cython.double) -> cython.void:
        """Count the exclusion tags of an instance on a node."""
        c: cython.int
        a: cython.int = i * IW
        start: cython.int = cython.cast(cython.int, self.insts[a + 15])
        for c in range(start, start + cython.cast(cython.int, self.insts[a + 16])):
            self.tagged[node * self.tags + self.taglist[c]] += by

    @cython.cfunc
    @cython.exceptval(check=False)
    def commit(self, i: cython.int, verb: cython.int, t: cython.int) -> cython.void:
        """Make the scratch rows the real ones, after a failover or restart."""
        a: cython.int = i * IW
        n: cython.int = self.n
        p: cython.int = cython.cast(cython.int, self.insts[a + 7])
        s: cython.int = cython.cast(cython.int, self.insts[a + 8])
        self.count_fixed(i, verb, p, s if verb == F else -1, t)
        self.conflicts, self.off_all, self.off_pri = self.c_tags, self.c_all, self.c_pri
        self.mark(i, p, -1.0)
        self.mark(i, s if verb == F else t, 1.0)
        self.copy(n, p)
        if verb == F:
            self.copy(n + 1, s)
            self.peers[s * n + p] -= self.insts[a + 5]
            self.peers[p * n + s] += self.insts[a + 5]
        else:
            self.copy(n + 2, t)
        self.dirty = True

    @cython.cfunc
    @cython.exceptval(check=False)
    def why_primary(
        self, i: cython.int, row: cython.int, node: cython.int, force: cython.bint
    ) -> cython.int:
        """Run an instance on a row; return 0, or the number of the refusal.

        The numbers are places in `moorage.htools.words.Fail`, counted from 1.
        """
        o: cython.int = row * W
        local: cython.bint = self.insts[i * IW + 6] != 0.0
        r = self.rows
        failed: cython.double = r[o + 3]
        if self.add_primary(i, row, node, force):
            return 0
        if r[o + 1] <= 0.0:
            return 1
        if local and (r[o + 4] <= 0.0 or r[o + 4] < r[o + 6]):
            return 2
        if local and r[o + 11] > r[o + 12]:
            return 2
        if r[o + 3] != 0.0 and failed == 0.0:
            return 1
        if r[o + 10] >= 0.0 and r[o + 10] < r[o + 7] / r[o + 8]:
            return 3
        if self.clashes(i, node) > 0:
            return 5
        if r[o + 20] <= 0.0:
            return 1
        if local and not self.has_disk(o):
            return 2
        return 3

    @cython.cfunc
    @cython.exceptval(check=False)
    def why_secondary(
        self, i: cython.int, row: cython.int, peer: cython.double
    ) -> cython.int:
        """Keep the second copy on a row; return 0, or the refusal, likewise."""
        o: cython.int = row * W
        a: cython.int = i * IW
        r = self.rows
        failed: cython.double = r[o + 3]
        if self.add_secondary(i, row, peer, False, False):
            return 0
        if r[o + 4] <= 0.0 or r[o + 4] < r[o + 6] or r[o + 11] > r[o + 12]:
            return 2
        if self.insts[a + 5] >= r[o + 1] or (r[o + 3] != 0.0 and failed == 0.0):
            return 1
        if not self.has_disk(o):
            return 2
        return 1

    def singles(self, i, places, force):
        """Return (refusal, score) of a new instance on each of some nodes."""
        found = []
        n: cython.int = self.n
        t: cython.int
        why: cython.int
        for place in places:
            t = place
            self.copy(t, n + 2)
            why = self.why_primary(i, n + 2, t, force)
            if why != 0:
                found.append((why, 0.0))
                continue
            self.measure(n + 2, self.new, 2 * K)
            self.c_all, self.c_pri = self.off_all, self.off_pri
            self.c_tags = self.conflicts + (self.clashes(i, t) if self.tags > 0 else 0)
            unsafe = self.n1 + self.unsafe(n + 2) - self.unsafe(t)
            found.append((0, self.exactly(-1, -1, t, unsafe)))
        return found

    def pairs(self, i, p, others, force):
        """Return refusals and scores of a new mirrored instance on p and others.

        The scores come from running sums, as `moorage.htools.allocate.Sums`
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
                scores.append(self.pair(p, s))
        return whys, scores

    def best_pair(self, i, places, force):
        """Return how often each refusal occurs, and the last of the best pairs.

        The pair comes as (score, p, s), or as None; places are those of `pairs`.
        """
        why: cython.int
        s: cython.int
        score: cython.double
        least: cython.double = HUGE
        best = None
        counts = [0] * 8
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
                    score = self.pair(p, s)
                    if score <= least:
                        least = score
                        best = (score, p, other)
        return counts, best

    @cython.cfunc
    @cython.exceptval(check=False)
    def enter(self, i: cython.int, p: cython.int, force: cython.bint) -> cython.int:
        """Run a new instance on p, in scratch; return 0, or the refusal."""
        n: cython.int = self.n
        k: cython.int
        self.copy(p, n)
        why: cython.int = self.why_primary(i, n, p, force)
        if why != 0:
            return why
        counts: cython.bint = self.rows[p * W + 19] == 0.0
        if counts:
            self.measure(n, self.new, 0)
        else:
            for k in range(K):
                self.new[k] = self.x[p * K + k]
        for k in range(K):
            self.shift(k, self.sums[k], self.variances[k], self.x[p * K + k], 0)
        self.c_all, self.c_pri, self.c_tags = self.off_all, self.off_pri, self.conflicts
        if counts and self.tags > 0:
            self.c_tags += self.clashes(i, p)
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def why_pair(self, i: cython.int, p: cython.int, s: cython.int) -> cython.int:
        """Keep its second copy on s, in scratch; return 0, or the refusal."""
        self.copy(s, self.n + 1)
        return self.why_secondary(i, self.n + 1, self.peers[s * self.n + p])

    @cython.cfunc
    @cython.exceptval(check=False)
    def pair(self, p: cython.int, s: cython.int) -> cython.double:
        """Return the score of the pair in scratch."""
        n: cython.int = self.n
        self.measure(n + 1, self.new, K)
        unsafe: cython.double = self.n1
        if self.rows[p * W + 19] == 0.0:
            unsafe += self.unsafe(n) - self.unsafe(p)
        unsafe = (unsafe + self.unsafe(n + 1)) - self.unsafe(s)
        kept: cython.double = (self.kept + self.new[2]) - self.x[p * K + 2]
        kept = (kept + self.new[K + 2]) - self.x[s * K + 2]
        return self.shifted(s, unsafe, kept)

    @cython.cfunc
    @cython.exceptval(check=False)
    def shift(
        self,
        k: cython.int,
        total: cython.double,
        variance: cython.double,
        was: cython.double,
        slot: cython.int,
    ) -> cython.void:
        """Write sum and variance of a metric after one node changed."""
        now: cython.double = self.new[slot * K + k]
        d: cython.double = now - was
        dd: cython.double = now * now - was * was
        dev: cython.double = (self.online * dd - 2.0 * total * d) - d * d
        dev = variance + dev / (self.online * self.online)
        # The two rows of bounds are free here; they hold the shifted sums.
        self.widest[k] = total + d
        self.least[k] = max(0.0, dev)

    @cython.cfunc
    @cython.exceptval(check=False)
    def root(self, k: cython.int, s: cython.int) -> cython.double:
        """Return the spread of a metric after p and s changed."""
        now: cython.double = self.new[K + k]
        was: cython.double = self.x[s * K + k]
        d: cython.double = now - was
        dd: cython.double = now * now - was * was
        dev: cython.double = (self.online * dd - 2.0 * self.widest[k] * d) - d * d
        dev = self.least[k] + dev / (self.online * self.online)
        return sqrt(dev) if dev > 0.0 else 0.0

    @cython.cfunc
    @cython.exceptval(check=False)
    def shifted(
        self, s: cython.int, unsafe: cython.double, kept: cython.double
    ) -> cython.double:
        """Return the score after p and s changed, in the order that defines it."""
        score: cython.double = 0.0
        score += self.root(0, s) * 0.5
        score += self.root(1, s) * 0.5
        score += unsafe
        score += self.root(2, s)
        score += self.c_all * 4.0
        score += self.c_pri * 16.0
        score += self.root(3, s) * 0.5
        score += self.root(4, s)
        score += self.root(5, s)
        score += self.root(6, s)
        score += self.root(7, s)
        score += self.c_tags * 2.0
        score += self.root(8, s) * 0.5
        score += self.root(9, s) * 0.5
        score += self.root(10, s) * 0.5
        score += self.root(11, s) * 0.5
        score += self.root(12, s) * 0.5
        score += self.apart
        score += self.domains
        return score + kept * 0.25
