# SPDX-License-Identifier: BSD-2-Clause
"""What comes behind something in a list: a row of columns, compared with one of values.

Written out with "or", no index leads there when many things have the first value.
"""

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, F, Value
from django.db.models.sql.compiler import SQLCompiler


class Behind(Expression):
    """Whether columns are after values, all of them in one direction.

    Parameters
    ----------
    values
        One for each column, as the columns' fields have them.
    down
        Whether larger ones come first.
    """

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], *, down: bool
    ) -> None:
        super().__init__(output_field=BooleanField())
        self._columns: list[Any] = [F(name) for name in names]
        self._values, self._down = tuple(values), down

    def get_source_expressions(self) -> list[Expression]:
        """Return the columns."""
        return self._columns

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        """Take the columns as the query has them."""
        self._columns = list(exprs)

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[str | int, ...]]:
        """Return ``(a, b) > (1, 2)``."""
        del connection
        values = [
            Value(value, output_field=column.output_field)
            for column, value in zip(self._columns, self._values, strict=True)
        ]
        left, given = _row(self._columns, compiler)
        right, wanted = _row(values, compiler)
        return f"{left} {'<' if self._down else '>'} {right}", (*given, *wanted)


def _row(
    parts: Sequence[Expression], compiler: SQLCompiler
) -> tuple[str, tuple[str | int, ...]]:
    found = [compiler.compile(one) for one in parts]
    words = ", ".join(text for text, _ in found)
    return f"({words})", tuple(one for _, more in found for one in more)
