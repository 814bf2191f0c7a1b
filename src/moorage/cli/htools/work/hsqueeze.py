# SPDX-License-Identifier: BSD-2-Clause
"""hsqueeze: say which nodes can be powered off, or must be powered on."""

from collections.abc import Sequence

from moorage.cli.declaration import Options
from moorage.cli.htools import source
from moorage.cli.htools.files import STOP_CHECK
from moorage.errors import BadInput
from moorage.htools import squeezing
from moorage.htools.plans import plan
from moorage.htools.plans.search import best_step
from moorage.htools.squeezing import STANDBY_AUTO, Squeeze
from moorage.htools.state import State

"""Largest factor; no node is so large."""


def run(options: Options) -> int:
    """Say which nodes can be switched off, or must be switched on."""
    state = source.cluster(options).state
    source.save(options.save, "original", "before hsqueeze run", state)
    if options.verbose:
        _show_candidates(state)
    least = squeezing.probe(state.policy.standard, options.minimal_resources)
    if not squeezing.has_room(state, least):
        _expand(options, state, squeezing.expand(state, least, search=best_step))
        return 0
    left = squeezing.probe(state.policy.standard, options.target_resources)
    found = squeezing.squeeze(state, left, search=best_step)
    if found is None:
        _rest(options, state)
    else:
        _condense(options, state, found)
    return 0


def _show_candidates(state: State) -> None:
    for what, nodes in (
        ("Offline", squeezing.can_leave(state)),
        ("Online", squeezing.can_return(state)),
    ):
        print(f"{what} candidates: " + ",".join(node.name for node in nodes))


def _expand(options: Options, state: State, found: Squeeze) -> None:
    _show(options, "'Nodes to online'", state, found.nodes)
    if options.verbose and not found.suffices:
        print("Onlining all nodes will not yield enough capacity")
    names = [state.nodes[at].alias for at in found.nodes]
    lines = ["echo Power Commands", *(f"  gnt-node power -f on {n}" for n in names)]
    _save_commands(options, _lines(lines) + _moves(state, found))
    if options.execute:
        _execute(options, found, offline=False)
    source.save(options.save, "squeezed", "after hsqueeze expansion", found.plan.end)


def _rest(options: Options, state: State) -> None:
    _show(options, "'No action'", state, ())
    _save_commands(options, "echo Nothing to do")
    source.save(options.save, "squeezed", "after hsqueeze doing nothing", state)


def _condense(options: Options, state: State, found: Squeeze) -> None:
    _show(options, "'Nodes to offline'", state, found.nodes)
    names = [state.nodes[at].alias for at in found.nodes]
    lines = [
        *("", "echo Tagging Commands"),
        *(f"  gnt-node add-tags {name} {STANDBY_AUTO}" for name in names),
        *("", "echo Power Commands"),
        *(f"  gnt-node power -f off {name}" for name in names),
    ]
    _save_commands(options, _moves(state, found) + _lines(lines))
    if options.execute:
        _execute(options, found, offline=True)
    source.save(options.save, "squeezed", "after hsqueeze run", found.plan.end)


def _show(options: Options, heading: str, state: State, nodes: Sequence[int]) -> None:
    if not options.no_headers:
        print(heading)
    for at in nodes:
        print(state.nodes[at].name)


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _moves(state: State, found: Squeeze) -> str:
    """Return the commands of the moves; they name instances in full."""
    steps = [
        step._replace(before=step.before.copy(alias=step.before.name))
        for step in found.plan.steps
    ]
    return plan.shell(plan.job_sets(steps), state.nodes)


def _save_commands(options: Options, text: str) -> None:
    path = options.print_commands
    if path:
        source.write(path, STOP_CHECK + text)
        print(f"The commands have been written to file '{path}'")
    elif path is not None:
        kept = (line for line in text.splitlines() if line != "  check")
        print("\nCommands to run:\n" + "".join(f"  {line}\n" for line in kept), end="")


def _execute(options: Options, found: Squeeze, *, offline: bool) -> None:
    if options.luxi is None:
        raise BadInput("hsqueeze: Execution of commands possible only on LUXI")
    from moorage.cli.htools.squeeze_exec import execute  # noqa: PLC0415 - start-up time

    execute(options.luxi, found, offline=offline)
