# SPDX-License-Identifier: BSD-2-Clause
"""What was seen on the disk of a node whose power was cut, and what of it is torn."""

from collections.abc import Iterator
from typing import Any


def torn(seen: dict[str, Any], role: str) -> Iterator[tuple[str, str]]:
    """Yield what is neither whole nor absent."""
    for what in ("copy",) if role == "candidate" else ("copy", "store"):
        said = seen[what]
        if said and said.get("sound", "ok") != "ok":
            yield "torn", f"the {what} is damaged: {said['sound']}"
        if said and "error" in said and "FileNotFound" not in said["error"]:
            yield "torn", f"the {what} cannot be read: {said['error']}"
    for name, text in seen["fences"].items():
        if not name.startswith(".") and not text:
            yield "torn", f"fence {name} is empty"
    for path in seen["empty"]:
        yield "torn", f"{path} is empty"


def short(seen: dict[str, Any]) -> dict[str, Any]:
    """Return it without the jobs."""

    def less(said: dict[str, Any] | None) -> dict[str, Any] | None:
        return {k: v for k, v in said.items() if k != "jobs"} if said else None

    return seen | {"copy": less(seen["copy"]), "store": less(seen["store"])}
