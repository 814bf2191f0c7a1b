# SPDX-License-Identifier: BSD-2-Clause
"""The words of placement: templates, states, allocation policies, refusals."""

from enum import Enum
from typing import Final

from moorage.disk_templates import FACTS, Mirror


class Fail(Enum):
    """Why a node refused an instance, in the order that reports use.

    The value is the name that Ganeti's tools print.
    """

    MEMORY = "FailMem"
    DISK = "FailDisk"
    CPU = "FailCPU"
    N1 = "FailN1"
    TAGS = "FailTags"
    MIGRATION = "FailMig"
    DISK_COUNT = "FailDiskCount"
    SPINDLES = "FailSpindles"
    INTERNAL = "FailInternal"


TEMPLATES: Final = tuple(FACTS)
"""Every disk template, in the order of the default policy."""

SPELLINGS: Final = {
    **{word: one.name for one in FACTS.values() for word in one.spellings},
    **{name: name for name in TEMPLATES},
}

PAIRED: Final = next(
    one.name for one in FACTS.values() if one.mirror is Mirror.INTERNAL
)
"""The template whose instances have a secondary node."""

STATUSES: Final = (
    "running",
    "ADMIN_down",
    "ADMIN_offline",
    "ERROR_down",
    "ERROR_up",
    "ERROR_nodedown",
    "ERROR_nodeoffline",
    "ERROR_wrongnode",
    "USER_down",
)

IDLE: Final = frozenset({"ADMIN_down", "ADMIN_offline", "ERROR_down", "USER_down"})
"""Statuses in which an instance uses no memory."""

ALLOC_POLICIES: Final = ("preferred", "last_resort", "unallocable")
"""Whether new instances go to a group: gladly, if there is no other, or not."""


LEAST: Final = 1e-6
"""Of fractions above 0: smaller ones only serve to make others infinite."""


def ratio(part: float, whole: float) -> float:
    """Return ``part / whole`` with IEEE results where `whole` is 0.

    >>> ratio(1, 0), ratio(-1, 0), ratio(1, 4)
    (inf, -inf, 0.25)
    """
    if whole:
        return part / whole
    if part == 0 or part != part:  # noqa: PLR0124 - only NaN differs from itself
        return float("nan")
    return float("inf") if part > 0 else float("-inf")


def fixed(value: float, places: int) -> str:
    """Return a number with so many decimal places.

    The digits that are rounded are those of the shortest decimal that reads
    back as the same number, and half goes to the even digit. Python rounds the
    binary number instead, which differs where the shortest decimal ends in 5.

    >>> fixed(0.208578125, 8), fixed(65.258359375, 8), f"{65.258359375:.8f}"
    ('0.20857812', '65.25835938', '65.25835937')
    >>> fixed(2e21, 1)
    '2000000000000000000000.0'
    """
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124
        return "NaN" if value != value else f"{value:f}".replace("inf", "Infinity")  # noqa: PLR0124
    text = repr(value)
    _, dot, decimals = text.partition(".")
    if "e" not in text and not (
        dot and len(decimals) == places + 1 and decimals[-1] == "5"
    ):
        return f"{value:.{places}f}"
    from decimal import ROUND_HALF_EVEN, Context, Decimal  # noqa: PLC0415 - rare

    step, wide = Decimal(1).scaleb(-places), Context(prec=400)
    return f"{Decimal(text).quantize(step, ROUND_HALF_EVEN, wide):.{places}f}"


__all__ = [
    "ALLOC_POLICIES",
    "IDLE",
    "LEAST",
    "PAIRED",
    "SPELLINGS",
    "STATUSES",
    "TEMPLATES",
    "Fail",
    "Mirror",
    "fixed",
    "ratio",
]
