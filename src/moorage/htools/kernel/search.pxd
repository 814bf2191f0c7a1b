# SPDX-License-Identifier: BSD-2-Clause
from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.candidates cimport Candidates


cdef class Search(Candidates):
    cdef double *memo
    cdef int memory

    cdef object scan_late(self, int* waiting, int count)
    cdef void scan(self, int i) noexcept
    cdef void note(self, int i, double least) noexcept
    cdef double recall(self, int i) noexcept
    cdef bint stale(self, int i, int* marks) noexcept
    cdef void freshen(self, int i, int* touched) noexcept
    cdef double offer(self, int i, int verb, int t) noexcept
