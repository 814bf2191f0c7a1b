# SPDX-License-Identifier: BSD-2-Clause
from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.rows cimport Rows


cdef class Moves(Rows):
    cdef double *new
    cdef double *widest
    cdef double *least
    cdef double c_tags, c_all, c_pri

    cdef bint run(self, int i, int verb, int t) noexcept
    cdef bint run_failover(self, int i, int p, int s, bint gone) noexcept
    cdef bint run_replace(self, int i, int verb, int t, int p, int s) noexcept
    cdef bint run_through(self, int i, int verb, int t, int s, bint gone) noexcept
    cdef double change(self, int i, int verb, int t, bint exact) noexcept
    cdef void count_fixed(self, int i, int verb, int p, int s, int t) noexcept
    cdef double quickly(self, int p, int s, int t, double rest) noexcept
    cdef double exactly(self, int p, int s, int t, double unsafe) noexcept
    cdef double value(self, int j, int k, int p, int s, int t) noexcept
    cdef double added(self, int k, int p, int s, int t) noexcept
    cdef double deviation(self, int k, int p, int s, int t) noexcept
