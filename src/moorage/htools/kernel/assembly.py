# SPDX-License-Identifier: BSD-2-Clause
"""The kernel, put together: what the planner asks of rows, and which part answers.

=============  =====================================================================
`Tables`       the arrays, and plain questions about them
`Rows`         coming to a node and leaving it, on a row
`Scores`       values, sums and the score
`Moves`        one move on scratch rows
`Near`         the candidates near the best
`Candidates`   what a move would score, in a handful of products
`Search`       the best move of all instances
`Leaving`      one instance off both its nodes, in several moves
`Placing`      one instance after a loss, or a new one
=============  =====================================================================

Each part knows those above it, and none below.
"""

from moorage.htools.kernel.candidates import Candidates
from moorage.htools.kernel.leaving import Leaving
from moorage.htools.kernel.moves import Moves
from moorage.htools.kernel.near import Near
from moorage.htools.kernel.placing import Placing, compiled
from moorage.htools.kernel.rows import Rows
from moorage.htools.kernel.scores import Scores
from moorage.htools.kernel.search import Search
from moorage.htools.kernel.tables import Tables

__all__ = ["Kernel", "compiled"]


class Kernel:
    """All that the planner asks of rows; see `Tables` for the parameters."""

    def __init__(self, arrays, sizes, force):
        tables = Tables(arrays, sizes, force)
        rows = Rows(tables)
        scores = Scores(tables, rows)
        moves = Moves(tables, rows, scores)
        near = Near(tables)
        candidates = Candidates(tables, rows, scores, moves, near)
        search = Search(tables, rows, scores, moves, candidates, near)
        leaving = Leaving(tables, rows, scores, moves, candidates, near)
        placing = Placing(tables, rows, scores, moves, candidates, near, leaving)
        self.know_paths, self.know_reach = tables.know_paths, tables.know_reach
        self.know_choices, self.know_places = tables.know_choices, tables.know_places
        self.know_units = tables.know_units
        self.prepare, self.reset = scores.prepare, scores.reset
        self.current, self.tries = scores.current, moves.tries
        self.find, self.band = search.find, search.band
        self.new_pair, self.restart = leaving.new_pair, placing.restart
        self.verdict, self.lose, self.anew = placing.verdict, placing.lose, placing.anew
        self.singles, self.pairs = placing.singles, placing.pairs
        self.best_pair = placing.best_pair
