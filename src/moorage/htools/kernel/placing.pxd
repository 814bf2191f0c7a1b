# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.tables cimport Tables
from moorage.htools.kernel.rows cimport Rows
from moorage.htools.kernel.scores cimport Scores
from moorage.htools.kernel.moves cimport Moves
from moorage.htools.kernel.candidates cimport Candidates
from moorage.htools.kernel.near cimport Near
from moorage.htools.kernel.leaving cimport Leaving


@cython.final
cdef class Placing:
    cdef readonly Tables tables
    cdef readonly Rows rows
    cdef readonly Scores scores
    cdef readonly Moves moves
    cdef readonly Candidates candidates
    cdef readonly Near near
    cdef readonly Leaving leaving
    cdef double *roots
    cdef bint needs_memory_alone(self, int i) noexcept
    cdef int foresee(self, int lost, int kind, double rest, double largest) noexcept
    cdef double alone(self, int i, int t) noexcept
    cdef void arrive(self, int i, int t) noexcept
    cdef int enter(self, int i, int p, bint force) noexcept
    cdef int why_pair(self, int i, int p, int s) noexcept
    cdef double pair(self, int i, int p, int s) noexcept
    cdef void shift(self, int k, int p) noexcept
    cdef double shifted(self, int p, int s, double unsafe) noexcept
    cdef double unit_spread(self, int s) noexcept
