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
cdef class Search:
    cdef readonly Tables tables
    cdef readonly Rows rows
    cdef readonly Scores scores
    cdef readonly Moves moves
    cdef readonly Candidates candidates
    cdef readonly Near near
    cdef double *memo
    cdef int memory
    cdef bint searched

    cdef object scan_late(self, int* waiting, int count)
    cdef void scan(self, int i) noexcept
    cdef void note(self, int i, double least) noexcept
    cdef double recall(self, int i) noexcept
    cdef bint stale(self, int i, int* marks) noexcept
    cdef void freshen(self, int i, int* touched) noexcept
    cdef double offer(self, int i, int verb, int t) noexcept
