# SPDX-License-Identifier: BSD-2-Clause
"""Plans as hbal finds and prints them: step by step, in pairs, compacted, priced."""

from collections.abc import Callable

from moorage.cli.declaration import Options
from moorage.htools.constants import fixed
from moorage.htools.plans import plan
from moorage.htools.plans.balancing import Plan, Rules, Step, balance
from moorage.htools.plans.guard import guard
from moorage.htools.plans.search import Searcher
from moorage.htools.state import State


def find_plan(options: Options, state: State, how: Rules) -> Plan:
    """Return the plan that the options ask for, its steps printed."""
    told = _teller(options, state)
    allowed = guard(state) if how.keep_redundancy else None
    early = None if options.compact else told
    if options.lookahead:
        from moorage.htools.plans.lookahead import look_ahead  # noqa: PLC0415 - start-up time

        found = look_ahead(state, how, allowed=allowed, told=early, turned=_turn)
    else:
        search = Searcher().best_step
        found = balance(state, how, search=search, allowed=allowed, told=early)
    return _compacted(found, how, told) if options.compact else found


def _teller(options: Options, state: State) -> Callable[[Step, int], None]:
    """Return what prints a step."""
    widths = plan.Widths.of(state.seen, state.people)
    more = _priced if options.cost else _unpriced

    def told(step: Step, number: int) -> None:
        line = plan.step_line(step, number, state.nodes, widths)
        print(line + more(step, state), flush=True)

    return told


def _unpriced(_step: Step, _state: State) -> str:
    return ""


def _priced(step: Step, state: State) -> str:
    from moorage.htools.plans.cost import cost_of  # noqa: PLC0415 - start-up time

    return f" ({cost_of(step, state.nodes)})"


def _turn(greedy: Plan) -> None:
    reached = fixed(greedy.last_score, 8)
    print(f"Single moves end at {reached}, trying pairs of moves...", flush=True)


def _compacted(found: Plan, how: Rules, told: Callable[[Step, int], None]) -> Plan:
    from moorage.htools.plans.compact import compacted  # noqa: PLC0415 - start-up time

    short = compacted(found, how)
    if len(short.steps) < len(found.steps):
        print(f"Compacted {len(found.steps)} moves into {len(short.steps)}:")
    for number, step in enumerate(short.steps, 1):
        told(step, number)
    return short


def print_cost(found: Plan) -> None:
    """Print what the whole plan copies."""
    from moorage.htools.plans.cost import shown, total_cost  # noqa: PLC0415 - start-up time

    cost = total_cost(found.steps, found.start.nodes)
    print(f"The plan copies {shown(cost.total)} ({cost})")
