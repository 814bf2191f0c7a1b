# SPDX-License-Identifier: BSD-2-Clause
"""The node agent: runs verbs, refuses what comes too late, keeps no truth.

Every verb is idempotent. Verbs on one disk or one guest wait for each other, so a step
that is taken back while it still runs is taken back after it.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert, to_builtins

from moorage.errors import BadInput
from moorage.model import Disk

from .fence import Fence
from .held import Shelf
from .hypervisors.base import Hypervisor, Report
from .machine import Machine
from .verbs import VERBS, DiskArgs, FactArgs, GuestArgs, Station


class Agent:
    """The agent of one node.

    Parameters
    ----------
    name
        Name of the node; scripts see it.
    run_dir
        What the agent must find again when it is killed and started.
    leave
        Called when the node leaves its cluster.
    """

    def __init__(
        self,
        name: str,
        run_dir: Path,
        machine: Machine,
        hypervisors: Mapping[str, Hypervisor],
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        held = Shelf(run_dir / "held")
        self._station = Station(name, machine, hypervisors, held, leave)
        self._fence = Fence(run_dir / "fence")
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def handle(
        self, verb: str, args: Mapping[str, Any], term: int, report: Report
    ) -> Any:  # noqa: ANN401
        """Run a verb and return its result as JSON values.

        Raises
        ------
        BadInput
            If there is no such verb, or its arguments are off.
        Stale
            If the term or an epoch is of the past.
        MoorageError
            What the verb raised.
        """
        if verb not in VERBS:
            raise BadInput(f"the agent has no verb '{verb}'", known=sorted(VERBS))
        kind, function = VERBS[verb]
        try:
            parsed = convert(args, kind)
        except ValidationError as error:
            raise BadInput(f"{verb}: {error}") from None
        self._fence.pass_term(term)
        if isinstance(parsed, FactArgs):
            return to_builtins(await function(self._station, parsed, report))
        async with self._alone(parsed):
            self._fence.pass_term(term)
            for disk in _disks(parsed):
                self._fence.pass_disk(disk)
            return to_builtins(await function(self._station, parsed, report))

    @asynccontextmanager
    async def _alone(self, args: object) -> AsyncIterator[None]:
        """Wait for the verbs under way on the same disks and guest."""
        names = sorted({disk.uuid for disk in _disks(args)})
        if isinstance(args, GuestArgs):
            names.append(args.uuid)
        async with AsyncExitStack() as stack:
            for name in names:
                await stack.enter_async_context(self._turns[name])
            yield


def _disks(args: object) -> tuple[Disk, ...]:
    if isinstance(args, DiskArgs):
        return (args.disk,)
    if isinstance(args, GuestArgs):
        return args.disks + ((args.disk,) if args.disk else ())
    return ()
