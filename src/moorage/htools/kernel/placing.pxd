# SPDX-License-Identifier: BSD-2-Clause
from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.leaving cimport Leaving


cdef class Kernel(Leaving):
    cdef bint needs_memory_alone(self, int i) noexcept
    cdef int foresee(self, int lost, int kind, double rest, double largest) noexcept
    cdef double alone(self, int i, int t) noexcept
    cdef void arrive(self, int i, int t) noexcept
    cdef int enter(self, int i, int p, bint force) noexcept
    cdef int why_pair(self, int i, int p, int s) noexcept
    cdef double pair(self, int i, int p, int s) noexcept
    cdef void shift(self, int k, double total, double variance, double was, int slot) noexcept
    cdef double root(self, int k, int s) noexcept
    cdef double shifted(self, int s, double unsafe, double kept) noexcept
