# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.tables cimport Tables
from moorage.htools.kernel.rows cimport Rows
from moorage.htools.kernel.scores cimport Scores
from moorage.htools.kernel.moves cimport Moves
from moorage.htools.kernel.near cimport Near


@cython.final
cdef class Candidates:
    cdef readonly Tables tables
    cdef readonly Rows rows
    cdef readonly Scores scores
    cdef readonly Moves moves
    cdef readonly Near near
    cdef double *old_d
    cdef double *old_q
    cdef double *rest
    cdef double *main
    cdef double *copies
    cdef int as_second, as_again
    cdef double kept_d, kept_q
    cdef bint gone_p, gone_s, stays, through

    cdef void leave(self, int i) noexcept
    cdef void leave_through(self, int i, int p, int s, double away) noexcept
    cdef void amounts(self, int i) noexcept
    cdef double unit_amount(self, int i, int unit) noexcept
    cdef void spreads(self, int verb, int p, double main_p, double copy_p, int s, double main_s, double copy_s) noexcept
    cdef double bear(self, int i, int j, double main, double copy, double kept) noexcept
    cdef double kept_with(self, int i, int j, int peer, double kept) noexcept
    cdef double target(self, int i, int t) noexcept
    cdef double weigh_alone(self, int i, int t, int p, double more) noexcept
    cdef double weigh_swap(self, int i, int t, int p, double more) noexcept
    cdef double weigh_again(self, int i, int t, int s, double more) noexcept
    cdef double weigh_copy(self, int i, int verb, int t, int home, int fit, bint force) noexcept
    cdef double weigh(self, int i, int verb, int t, double* amounts, double score) noexcept
    cdef double far(self, int i, int verb, int t) noexcept
