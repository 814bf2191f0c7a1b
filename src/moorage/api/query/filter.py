# SPDX-License-Identifier: BSD-2-Clause
"""Filters of jobs as queries show them: there are none."""

from collections.abc import Hashable
from typing import Any

from moorage.errors import MoorageError, NotFound

from .field import Resource, number, other, text


def _absent(_scene: object, uuid: Hashable) -> MoorageError:
    return NotFound(f"there is no filter '{uuid}': jobs are not filtered")


FILTER = Resource(
    name="filter",
    fields=(
        text("uuid", "UUID", "Identity"),
        number("watermark", "Watermark", "The last job before it"),
        number("priority", "Priority", "Which comes first"),
        other("predicates", "Predicates", "Which jobs"),
        other("action", "Action", "What happens to them"),
        other("reason_trail", "ReasonTrail", "Why"),
    ),
    order=str,
    every=lambda _scene: list[Any](),
    keys={"uuid": lambda _scene, _uuid: ()},
    absent=_absent,
)
