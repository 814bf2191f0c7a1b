# SPDX-License-Identifier: BSD-2-Clause
"""hbal: move instances until the cluster is well balanced."""

import sys
from collections.abc import Iterable

from moorage.cli.declaration import Options
from moorage.cli.htools import plan_options, source
from moorage.cli.htools.files import STOP_CHECK
from moorage.cli.htools.rules import rules
from moorage.cli.htools.values import verbosity
from moorage.errors import BadInput
from moorage.htools.constants import fixed
from moorage.htools.loader import shared_suffix
from moorage.htools.metrics import least_score, score
from moorage.htools.node import Node, people_on
from moorage.htools.plans import plan
from moorage.htools.plans.balancing import Plan, Rules, Step
from moorage.htools.state import State


def run(options: Options) -> int:
    """Plan, print and perhaps carry out what balances the cluster."""
    whole = source.cluster(options).state
    verbose = verbosity(options)
    if not whole.insts:
        if verbose > 1:
            _print_cluster(whole)
        print("Cluster is empty, exiting.")
        _picture(options, "", whole)
        return 0
    _introduce(whole, verbose)
    source.save(options.save, "original", "before balancing", whole)
    name, state = select_group(whole, options.group)
    _check_group(options, verbose, name, state)
    _show(options, "Initial", state)
    how = rules(options)
    if _is_balanced(verbose, state, how):
        _picture(options, name, state)
        return 0
    print("Trying to minimize the CV...")
    found = plan_options.find_plan(options, state, how)
    _conclude(options, verbose, found)
    if options.explain:
        _explain(found, how)
    source.save(options.save, "balanced", "after balancing", found.end)
    _show(options, "Final", found.end)
    if verbose > 3:
        _print_totals(found)
    _picture(options, name, found)
    if options.execute and found.steps:
        _execute(options, found)
    return 0


def _picture(options: Options, group: str, found: Plan | State) -> None:
    """Draw a plan, or a state that needs none, if a picture is asked for."""
    if options.html is None:
        return
    from moorage.cli.htools.drawing import save_plan  # noqa: PLC0415

    save_plan(options, group, found)


def _print_cluster(state: State) -> None:
    from moorage.htools import reports  # noqa: PLC0415 - start-up time

    print("Loaded cluster tags: " + ",".join(state.fleet.tags))
    print("Loaded cluster ipolicy: " + reports.policy_text(state.policy))


def _introduce(state: State, verbose: int) -> None:
    if verbose > 1:
        _print_cluster(state)
    apart = state.straddlers()
    if apart and verbose > 1:
        sys.stderr.write("Found instances belonging to multiple node groups:\n")
        sys.stderr.writelines(f"  {inst.name}\n" for inst in apart)
        sys.stderr.write("These instances will not be moved.\n")
    print(f"Loaded {len(state.nodes)} nodes, {len(state.insts)} instances")
    suffix = shared_suffix(state)
    if suffix and verbose > 1:
        print(f"Note: Stripping common suffix of '{suffix}' from names")


def select_group(state: State, asked: str | None) -> tuple[str, State]:
    """Return the name and view of the group to work on."""
    parts = state.split()
    if asked is None:
        if len(parts) > 1:
            sys.stderr.write("Found multiple node groups:\n")
            for at, _ in parts:
                sys.stderr.write(f"  {state.groups[at].name}\n")
            raise BadInput("Aborting.", hint="choose one with -G")
        at, view = parts[0]
        return state.groups[at].name, view
    for at, group in enumerate(state.groups):
        if asked in (group.name, group.uuid):
            return group.name, state.group_view(at)
    sys.stderr.write(f"Node group {asked} not found. Node group list is:\n")
    sys.stderr.writelines(f"  {group.name}\n" for group in state.groups)
    raise BadInput("Aborting.")


def _check_group(options: Options, verbose: int, name: str, state: State) -> None:
    nodes = state.seen
    print(f"Group size {len(nodes)} nodes, {len(state.members)} instances")
    print(f"Selected node group: {name}")
    bad = state.failing
    if verbose >= 1:
        print(
            f"Initial check done: {len(bad)} bad nodes, "
            f"{len(people_on(bad))} bad instances."
        )
    if verbose > 4:
        _print_health(bad, [node for node in nodes if node not in bad])
    if bad:
        print(
            "Cluster is not N+1 happy, continuing but no guarantee that the cluster "
            "will end N+1 happy."
        )
    broken = [node for node in nodes if node not in bad and node.breach()]
    if broken:
        print(f"The cluster contains {len(broken)} policy-violating nodes.")
        print(
            "Continuing, ignoring soft errors."
            if options.ignore_soft_errors
            else "Continuing, but the set of moves might be too restricted; consider "
            "using the --ignore-soft-errors option."
        )


def _print_health(bad: list[Node], good: list[Node]) -> None:
    for label, some in (("Bad", bad), ("N+1 happy", good)):
        print(f"{label} nodes: " + listed(node.name for node in some))
    states = ((node.name, node.breach()) for node in good)
    texts = (
        f'("{name}",{f"Bad {fail.value}" if fail else "Ok ()"})'
        for name, fail in states
    )
    print("Node policy status: [" + ",".join(texts) + "]")


def listed(words: Iterable[str]) -> str:
    """Return words as a list in brackets, quoted."""
    return "[" + ",".join(f'"{word}"' for word in words) + "]"


def _show(options: Options, when: str, state: State) -> None:
    if not options.print_instances and options.print_nodes is None:
        return
    from moorage.htools import reports  # noqa: PLC0415 - start-up time

    if options.print_instances:
        sys.stderr.write(f"\n{when} instance map:\n{reports.instance_table(state)}")
    if options.print_nodes is not None:
        shown = reports.node_table(state.seen, options.print_nodes)
        sys.stderr.write(f"\n{when} cluster status:\n{shown}\n")


def _print_metrics(state: State) -> None:
    from moorage.htools import reports  # noqa: PLC0415 - start-up time

    print(reports.metric_table(state.seen), end="")


def _is_balanced(verbose: int, state: State, how: Rules) -> bool:
    """Print the score; say whether there is nothing to gain."""
    now, least = score(state.seen), least_score(state.seen)
    if verbose > 2:
        print(f"Initial coefficients: overall {fixed(now, 8)}")
        _print_metrics(state)
    else:
        print(f"Initial score: {fixed(now, 8)}")
    if now - least >= how.min_score or now != now:  # noqa: PLR0124 - NaN
        return False
    print(
        f"Cluster is already well balanced (initial score {general(now)},\n"
        f"optimum score due to N+1 reservations {general(least)},\n"
        f"minimum score {general(how.min_score)}).\nNothing to do, exiting"
    )
    return True


def general(value: float) -> str:
    """Return a number with six digits after the point, as the tools print it."""
    if value == 0 or 0.1 <= abs(value) < 1e7:
        return f"{value:.6f}"
    digits, _, exponent = f"{value:.6e}".partition("e")
    return f"{digits}e{int(exponent)}"


def _conclude(options: Options, verbose: int, found: Plan) -> None:
    if not found.steps:
        print("No solution found")
    elif verbose > 2:
        print(f"Final coefficients:   overall {fixed(found.last_score, 8)}")
        _print_metrics(found.end)
    else:
        print(
            f"Cluster score improved from {fixed(found.first_score, 8)} "
            f"to {fixed(found.last_score, 8)}"
        )
    if verbose >= 1:
        print(f"Solution length={len(found.steps)}")
    if options.cost:
        plan_options.print_cost(found)
    sets = plan.job_sets(found.steps)
    if options.print_commands is not None:
        _print_commands(options, sets[:1] if options.first_job_group else sets, found)


def _explain(found: Plan, how: Rules) -> None:
    from moorage.htools.explain.no_move import explain_balance  # noqa: PLC0415 - start-up time

    print("\n".join(["", *explain_balance(found.end, how).sentences()]))


def _print_commands(options: Options, sets: list[list[Step]], found: Plan) -> None:
    text = plan.shell(sets, found.start.nodes)
    if options.print_commands:
        source.write(options.print_commands, STOP_CHECK + text)
        print(f"The commands have been written to file '{options.print_commands}'")
        return
    print()
    print(
        "First set of jobs:"
        if options.first_job_group
        else "Commands to run to reach the above solution:"
    )
    lines = (line for line in text.splitlines() if line != "  check")
    print("".join(f"  {line}\n" for line in lines), end="")


def _print_totals(found: Plan) -> None:
    for label, state in (("Original:", found.start), ("Final:   ", found.end)):
        mem = sum(node.unallocated for node in state.seen)
        disk = sum(node.disk_free for node in state.seen)
        print(f"{label} mem={mem} disk={disk}")


def _execute(options: Options, found: Plan) -> None:
    if options.luxi is None:
        raise BadInput("hbal: Execution of commands possible only on LUXI")
    from moorage.cli.htools.execute import execute  # noqa: PLC0415 - start-up time

    sets = plan.job_sets(found.steps)
    execute(options, sets[:1] if options.first_job_group else sets, found)
