# SPDX-License-Identifier: BSD-2-Clause
"""Asking the allocators of this node."""

from moorage.protocol import GetAllocators, Report, RunAllocator, Said

from .context import NodeContext


async def names(
    at: NodeContext, _args: GetAllocators, _report: Report
) -> tuple[str, ...]:
    """Return their names."""
    return at.machine.allocator_names()


async def run(at: NodeContext, args: RunAllocator, _report: Report) -> Said:
    """Run one of them."""
    return await at.machine.run_allocator(args)


VERBS = (GetAllocators.done_by(names), RunAllocator.done_by(run))
"""Every verb of allocators."""
