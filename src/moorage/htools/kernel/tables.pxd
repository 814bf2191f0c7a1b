# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col


@cython.final
cdef class Tables:
    cdef readonly int n, m, tags, units, counted, k, shared
    cdef bint force, barred, bounded, classed
    cdef list held
    cdef double *rows
    cdef double *insts
    cdef double *peers
    cdef double *tagged
    cdef int *taglist
    cdef int *active
    cdef double *merged
    cdef double *weights
    cdef double *adding
    cdef int *shares
    cdef int actives, summed, metrics
    cdef int *paths
    cdef int *storages
    cdef int *reach
    cdef int *classes
    cdef int *choices
    cdef int places
    cdef double *stands
    cdef double *wishes
    cdef double *crowd
    cdef double *stock
    cdef double *totals
    cdef double *floors
    cdef double *kinds
    cdef double *seen
    cdef int *wanted
    cdef double *sizes

    cdef double* doubles(self, double[::1] values)
    cdef int* integers(self, int[::1] values)
    cdef double* space(self, int size)
    cdef inline double* row(self, int j) noexcept:
        return self.rows + j * col.W
    cdef inline double* inst(self, int i) noexcept:
        return self.insts + i * col.IW
    cdef inline int* share(self, int k) noexcept:
        return self.shares + k * col.SW
    cdef inline int home(self, int i) noexcept:
        return <int> self.insts[i * col.IW + col.I_P]
    cdef inline int second(self, int i) noexcept:
        return <int> self.insts[i * col.IW + col.I_S]
    cdef inline int verbs(self, int i) noexcept:
        return <int> self.insts[i * col.IW + col.I_VERBS]
    cdef int first(self, int i, int column) noexcept
    cdef int last(self, int i, int column) noexcept
    cdef inline bint is_off(self, int j) noexcept:
        return self.rows[j * col.W + col.OFFLINE] != 0.0
    cdef inline int kind(self, int i) noexcept:
        return self.classes[i] if self.classed else 0
    cdef inline bint chooses(self, int kind, int j) noexcept:
        return not self.classed or self.choices[kind * self.n + j] != 0
    cdef inline bint migrates(self, int a, int b) noexcept:
        return not self.barred or self.paths[a * self.n + b] != 0
    cdef inline bint reaches(self, int i, int j) noexcept:
        return not self.bounded or self.reach[self.storages[i] * self.n + j] != 0
    cdef int clashes(self, int i, int node) noexcept
    cdef int unclashes(self, int i, int node) noexcept
    cdef void mark(self, int i, int node, double by) noexcept
    cdef double common(self, int a, int b) noexcept
    cdef double missed(self, int i, int j) noexcept
    cdef bint stands_in(self, int j, int place) noexcept
    cdef double crowds(self, int i, int a, int b) noexcept
