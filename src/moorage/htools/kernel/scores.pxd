# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.tables cimport Tables
from moorage.htools.kernel.rows cimport Rows


@cython.final
cdef class Scores:
    cdef readonly Tables tables
    cdef readonly Rows rows
    cdef double *x
    cdef double *new
    cdef double *sums
    cdef double *variances
    cdef double *counts
    cdef double *shrinks
    cdef double *twice_x
    cdef double *scales
    cdef double *level_n
    cdef double *level_s
    cdef double *level_v
    cdef double *measured
    cdef double online, shrink, n1, base
    cdef double conflicts, off_all, off_pri, apart, domains
    cdef double c_tags, c_all, c_pri, c_apart, c_domains
    cdef bint dirty

    cdef void as_is(self) noexcept
    cdef void take_counts(self) noexcept
    cdef void measure_all(self) noexcept
    cdef bint counts_in(self, int j, int k) noexcept
    cdef void spread(self, int k) noexcept
    cdef void scale(self, int j) noexcept
    cdef double per_unit(self, int j, int k) noexcept
    cdef void measure(self, int row, int node, double* into, int at) noexcept
    cdef void weigh_counts(self) noexcept
    cdef double counted(self, double unsafe) noexcept
    cdef double constant(self) noexcept
    cdef double weigh(self, double unsafe) noexcept
    cdef double exactly(self, int p, int s, int t, double unsafe) noexcept
    cdef double spread_of(self, int k, int p, int s, int t) noexcept
    cdef double value(self, int j, int k, int p, int s, int t) noexcept
    cdef double added(self, int k, int p, int s, int t) noexcept
    cdef double deviation(self, int k, int p, int s, int t) noexcept
