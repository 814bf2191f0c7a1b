# SPDX-License-Identifier: BSD-2-Clause
"""Back-end parameters: memory and processors, of the cluster or of an instance."""

from collections.abc import Mapping
from typing import Any

from moorage.errors import BadInput

MEMORY = ("minmem", "maxmem")
"""Two names for what there is one of: guests have no balloon."""
KNOWN = frozenset(
    {*MEMORY, "memory", "vcpus", "auto_balance", "always_failover", "spindle_use"}
)


def aliased(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with ``memory`` as Ganeti's two."""
    rest = dict(given)
    memory = rest.pop("memory", None)
    return rest if memory is None else dict.fromkeys(MEMORY, memory) | rest


def check(given: Mapping[str, Any]) -> None:
    """Raise `BadInput` for a parameter that is unknown, or no instance could have.

    The value ``default`` stands for the one of the cluster.
    """
    unknown = sorted(given.keys() - KNOWN)
    if unknown:
        known = ", ".join(sorted(KNOWN))
        raise BadInput(
            f"there is no back-end parameter '{unknown[0]}': there is {known}"
        )
    for name in ("memory", *MEMORY, "vcpus"):
        _check_positive(name, given.get(name, "default"))
    least, most = (given.get(name) for name in MEMORY)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise BadInput(
            f"minmem ({least} MiB) is more than maxmem ({most} MiB)",
            hint="-B memory=512M sets both",
        )


def _check_positive(name: str, value: object) -> None:
    number = isinstance(value, int) and not isinstance(value, bool)
    if value != "default" and not (number and value > 0):  # type: ignore[operator]
        raise BadInput(f"{name} is a whole number above 0, not '{value}'")
