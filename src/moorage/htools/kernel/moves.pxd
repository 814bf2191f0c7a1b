# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.tables cimport Tables
from moorage.htools.kernel.rows cimport Rows
from moorage.htools.kernel.scores cimport Scores


@cython.final
cdef class Moves:
    cdef readonly Tables tables
    cdef readonly Rows rows
    cdef readonly Scores scores
    cdef double *widest
    cdef double *least

    cdef bint run(self, int i, int verb, int t) noexcept
    cdef bint may_travel(self, int i, int verb, int p, int s, int t) noexcept
    cdef bint run_failover(self, int i, int p, int s, bint gone) noexcept
    cdef bint run_replace(self, int i, int verb, int t, int p, int s) noexcept
    cdef bint run_through(self, int i, int verb, int t, int s, bint gone) noexcept
    cdef double change(self, int i, int verb, int t, bint exact) noexcept
    cdef void count_fixed(self, int i, int verb, int p, int s, int t) noexcept
    cdef void count_places(self, int i, int verb, int p, int s, int t) noexcept
    cdef double shared(self, int i, int verb, int p, int s, int t) noexcept
    cdef double quickly(self, int p, int s, int t, double rest) noexcept
