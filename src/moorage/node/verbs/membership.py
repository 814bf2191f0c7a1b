# SPDX-License-Identifier: BSD-2-Clause
"""The verb by which a node leaves its cluster; how it gets in is another door."""

from typing import Any

from moorage.node.hypervisors.base import Report

from .fact import FactArgs
from .station import Station


async def leave(at: Station, _args: FactArgs, _report: Report) -> None:
    """Leave the cluster: its certificates are forgotten, and the door opens again."""
    at.leave()


VERBS: dict[str, Any] = {"node.leave": leave}
"""Every verb of membership."""
