# SPDX-License-Identifier: BSD-2-Clause
"""Writing the picture of a run where its options say."""

import sys
from typing import TextIO

from moorage.cli.declaration import Options
from moorage.cli.htools import source
from moorage.cli.htools.report.balancing import balancing_page
from moorage.cli.htools.report.filling import filling_page
from moorage.cli.htools.report.provenance import Origin, origin
from moorage.htools.metrics import score
from moorage.htools.placement.space import Filled, Size
from moorage.htools.plans.balancing import Plan
from moorage.htools.state import State


def save_plan(options: Options, group: str, found: Plan | State) -> None:
    """Write the picture of a balancing plan, and say so.

    A state is drawn as the plan that leaves it as it is.
    """
    plan = found if isinstance(found, Plan) else _idle(found)
    made = _origin("hbal", options, plan.start, group)
    _save(options.html, balancing_page(plan, made), sys.stdout)


def _idle(state: State) -> Plan:
    now = score(state.seen)
    return Plan(state, state, now, now, [])


def save_room(
    options: Options,
    start: State,
    fillings: tuple[Filled, Filled],
    size: Size,
    out: TextIO,
) -> None:
    """Write the picture of a tiered and a standard filling, and say so on `out`."""
    made = _origin("hspace", options, start)
    _save(options.html, filling_page(start, *fillings, size, made), out)


def _origin(program: str, options: Options, state: State, group: str = "") -> Origin:
    return origin(program, options.typed, options, state, group)


def _save(path: str, content: str, out: TextIO) -> None:
    source.write(path, content)
    print(f"The picture has been written to file '{path}'", file=out)
