# SPDX-License-Identifier: BSD-2-Clause
from moorage.htools.kernel cimport columns as col


cdef class Rows:
    cdef readonly int n, m, tags
    cdef int actives
    cdef bint force, dirty
    cdef list held
    cdef double *rows
    cdef double *insts
    cdef double *peers
    cdef double *tagged
    cdef int *taglist
    cdef int *active
    cdef double *merged
    cdef double *x
    cdef double *sums
    cdef double *variances
    cdef double *twice_x
    cdef double *scales
    cdef double *level_s
    cdef double *level_v
    cdef double online, shrink, base, conflicts, off_all, off_pri, apart, domains
    cdef double n1, kept, here

    cdef double* doubles(self, double[::1] values)
    cdef int* integers(self, int[::1] values)
    cdef double* space(self, int size)
    cdef int home(self, int i) noexcept
    cdef int second(self, int i) noexcept
    cdef int verbs(self, int i) noexcept
    cdef int first_tag(self, int i) noexcept
    cdef int last_tag(self, int i) noexcept
    cdef void measure_all(self) noexcept
    cdef void scale(self, int j) noexcept
    cdef void spread(self, int k) noexcept
    cdef double unsafe(self, int j) noexcept
    cdef void measure(self, int j, double* into, int at) noexcept
    cdef void copy(self, int src, int dst) noexcept
    cdef void drop_primary(self, int i, int row) noexcept
    cdef void give(self, int a, int o) noexcept
    cdef void take(self, int a, int o) noexcept
    cdef void drop_secondary(self, int i, int row, double kept) noexcept
    cdef bint add_primary(self, int i, int row, int node, bint force) noexcept
    cdef bint has_disk(self, int o) noexcept
    cdef int clashes(self, int i, int node) noexcept
    cdef int unclashes(self, int i, int node) noexcept
    cdef bint add_secondary(self, int i, int row, double peer, bint force, bint there) noexcept
    cdef double reserve_without(self, int i) noexcept
    cdef void reserve(self, int i) noexcept
    cdef void mark(self, int i, int node, double by) noexcept
    cdef double constant(self) noexcept
