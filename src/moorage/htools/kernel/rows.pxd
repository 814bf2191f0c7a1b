# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.tables cimport Tables


@cython.final
cdef class Rows:
    cdef readonly Tables tables
    cdef double here

    cdef void copy(self, int src, int dst) noexcept
    cdef double unsafe(self, int j) noexcept
    cdef void judge(self, double* r) noexcept
    cdef void weight(self, int i, int row, int node, double by) noexcept
    cdef double spindles_left(self, int i, double before, double by) noexcept
    cdef void settle(self, int i, int row, int node, double by) noexcept
    cdef int stocked(self, int i, int row, int node, double by) noexcept
    cdef void run_on(self, int i, int row, double by) noexcept
    cdef void drop_primary(self, int i, int row, int node) noexcept
    cdef void drop_secondary(self, int i, int row, int node, double kept) noexcept
    cdef int add_primary(self, int i, int row, int node, bint force) noexcept
    cdef int add_secondary(self, int i, int row, int node, double peer, bint force, bint there) noexcept
    cdef int runs(self, int i, int j, double freed, double kept) noexcept
    cdef int holds(self, int i, int j, double main, double freed) noexcept
    cdef bint still_runs(self, int i, int j) noexcept
    cdef bint is_strained(self, int i, double* r, double kept, bint safe) noexcept
    cdef int why_not_run(self, int i, int row, int node, double times, bint strained, bint force) noexcept
    cdef int why_not_keep(self, int i, int row, int node, double main, double times, bint strained, bint force, bint there) noexcept
    cdef int lacks_room(self, int i, int row, int node, double times, bint force, bint there) noexcept
    cdef int lacks_room_later(self, int i, double* r, double times) noexcept
    cdef int space(self, int i, int row, int node, double times) noexcept
    cdef bint is_crowded(self, int i, double* r, double used, double times) noexcept
    cdef bint is_over(self, double* r, double used) noexcept
    cdef double reserve_without(self, int i) noexcept
    cdef void reserve(self, int i) noexcept
