# SPDX-License-Identifier: BSD-2-Clause
import cython

from moorage.htools.kernel cimport columns as col
from moorage.htools.kernel.tables cimport Tables
from moorage.htools.kernel.rows cimport Rows
from moorage.htools.kernel.scores cimport Scores
from moorage.htools.kernel.moves cimport Moves
from moorage.htools.kernel.candidates cimport Candidates
from moorage.htools.kernel.near cimport Near


@cython.final
cdef class Leaving:
    cdef readonly Tables tables
    cdef readonly Rows rows
    cdef readonly Scores scores
    cdef readonly Moves moves
    cdef readonly Candidates candidates
    cdef readonly Near near
    cdef double *trail
    cdef double *gain_d
    cdef double *gain_q
    cdef double start_n1
    cdef double best_exact
    cdef int span

    cdef int nearest(self, int i) noexcept
    cdef void measure_stops(self) noexcept
    cdef void gain(self, double sign) noexcept
    cdef double unsafe_stops(self) noexcept
    cdef void measure_trail(self) noexcept
    cdef bint walk(self, int i, int p) noexcept
    cdef bint step(self, int i, int verb, int t) noexcept
    cdef void commit(self, int i, int verb, int t) noexcept
    cdef void leave_trail(self, int i, int p) noexcept
    cdef void walk_back(self, int i) noexcept
    cdef int stop(self, int c) noexcept
    cdef int cell(self, int c, int d) noexcept
