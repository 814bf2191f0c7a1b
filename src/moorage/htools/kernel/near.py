# SPDX-License-Identifier: BSD-2-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True
"""The candidates near the best, each as instance, verb, target and rough score."""

from moorage.htools.kernel import columns as col


class Near:
    """The best so far, and who is so near that it must be scored again in full."""

    def __init__(self, tables):
        self.tables = tables
        self.kept, self.count = self.tables.space(4 * col.ROOM), 0
        self.best = self.above = 0.0

    def begin(self, best, above):
        """Forget everybody; take who beats `best`, but nobody up to `above`."""
        self.best, self.above, self.count = best, above, 0

    def keep(self, i, verb, t, found):
        """Keep a candidate if it is near the best."""
        if found <= self.above or found >= self.best + col.NEAR:
            return
        self.best = min(self.best, found)
        if self.count == col.ROOM:
            self.weed()
        if self.count < col.ROOM:
            self.kept[4 * self.count] = i
            self.kept[4 * self.count + 1] = verb
            self.kept[4 * self.count + 2] = t
            self.kept[4 * self.count + 3] = found
            self.count += 1

    def weed(self):
        """Drop kept candidates that are no longer near."""
        left = 0
        for c in range(self.count):
            if self.kept[4 * c + 3] < self.best + col.NEAR:
                for b in range(4):
                    self.kept[4 * left + b] = self.kept[4 * c + b]
                left += 1
        self.count = left
