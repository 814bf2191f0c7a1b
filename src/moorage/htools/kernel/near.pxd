# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.tables cimport Tables


@cython.final
cdef class Near:
    cdef readonly Tables tables
    cdef double *kept
    cdef int count
    cdef double best, above

    cdef void begin(self, double best, double above) noexcept
    cdef void keep(self, int i, int verb, int t, double found) noexcept
    cdef void weed(self) noexcept
