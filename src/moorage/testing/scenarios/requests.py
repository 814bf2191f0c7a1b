# SPDX-License-Identifier: BSD-2-Clause
"""Requests as data: what the sweeps run, and what it is called in their reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Scenario:
    """A request, and a name for it."""

    name: str
    op_id: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def on(instance: str, op_id: str, name: str = "", **fields: Any) -> Scenario:  # noqa: ANN401
    """Return a request about an instance."""
    word = name or op_id.removeprefix("OP_INSTANCE_").lower().replace("_", "-")
    return Scenario(f"{word} {instance}", op_id, {"instance_name": instance, **fields})


def at(disk: str, op_id: str, name: str = "", **fields: Any) -> Scenario:  # noqa: ANN401
    """Return a request about a disk."""
    word = name or op_id.removeprefix("OP_DISK_").lower()
    return Scenario(f"{word} {disk}", op_id, {"disk": disk, **fields})


def modified(instance: str, name: str, disks: list[Any], **more: Any) -> Scenario:  # noqa: ANN401
    """Return a change of an instance's disks, as ``gnt-instance modify`` makes them."""
    return on(instance, "OP_INSTANCE_SET_PARAMS", name, disks=disks, **more)
