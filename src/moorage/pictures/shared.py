# SPDX-License-Identifier: BSD-2-Clause
"""Storage that several nodes share, or that cannot tell its room."""

from markupsafe import Markup

from moorage.htools.fleet import UnitName
from moorage.htools.state import State
from moorage.htools.survival.pool import Pool, pools
from moorage.units import format_size

from .bars import percent
from .ink import drawn


def pool_table(state: State) -> Markup:
    """Return the pools that no node's bar shows; nothing without any."""
    apart = _apart(state)
    found = [pool for pool in pools(state.fleet) if pool.name in apart]
    rows = [_row(state, pool) for pool in found]
    return drawn("shared.html", rows=rows) if rows else Markup()


def _apart(state: State) -> set[UnitName]:
    """Return the units that nodes share, or that do not tell their room."""
    return {
        unit.name
        for at in state.view
        for unit in state.fleet.nodes[at].units or ()
        if unit.shared or unit.total is None or unit.free is None
    }


def _row(state: State, pool: Pool) -> tuple[str, ...]:
    sizes = [
        size for inst in state.people for want, size in inst.wants if want == pool.name
    ]
    use = "unknown"
    if pool.total and pool.free is not None:
        use = percent(1 - pool.free / pool.total)
    return (
        " ".join(pool.name),
        str(len(pool.nodes)),
        _known(pool.total),
        _known(pool.free),
        use,
        f"{len(sizes):,}, {format_size(sum(sizes))}" if sizes else "none known",
    )


def _known(size: int | None) -> str:
    return "unknown" if size is None else format_size(size)
