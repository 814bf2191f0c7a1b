# SPDX-License-Identifier: BSD-2-Clause
"""hinfo: say what a cluster looks like."""

import sys

from moorage.cli.declaration import Options
from moorage.cli.htools import source
from moorage.cli.htools.values import counted, verbosity
from moorage.htools import reports
from moorage.htools.constants import fixed
from moorage.htools.loader import shared_suffix
from moorage.htools.metrics import score
from moorage.htools.node import people_on
from moorage.htools.state import State


def run(options: Options) -> int:
    """Print what the cluster looks like."""
    state = source.cluster(options).state
    verbose = verbosity(options)
    print("Loaded cluster tags: " + ",".join(state.fleet.tags))
    if verbose > 2:
        print("Loaded cluster ipolicy: " + reports.policy_text(state.policy))
    _sizes(state, verbose)
    _apart(state, verbose)
    _groups(state, verbose)
    if options.print_instances:
        sys.stderr.write(f"\nInstances instance map:\n{reports.instance_table(state)}")
    if options.print_nodes is not None:
        shown = reports.node_table(state.nodes, options.print_nodes)
        sys.stderr.write(f"\nCluster status:\n{shown}\n")
    print("Cluster coefficients:\n" + reports.metric_table(state.nodes), end="")
    print(f"Cluster score: {fixed(score(state.nodes), 8)}")
    return 0


def _sizes(state: State, verbose: int) -> None:
    if not state.insts and verbose > 1:
        print("Cluster is empty.")
    print(
        f"Loaded {counted(len(state.nodes), 'node')}, "
        f"{counted(len(state.insts), 'instance')}, "
        f"{counted(len(state.groups), 'node group')}"
    )
    suffix = shared_suffix(state)
    if suffix and verbose > 2:
        print(f"Note: Stripping common suffix of '{suffix}' from names")


def _apart(state: State, verbose: int) -> None:
    apart = state.straddlers()
    if apart:
        print("Found instances belonging to multiple node groups:")
        sys.stdout.flush()
        sys.stderr.writelines(f"  {inst.name}\n" for inst in apart)
    elif verbose > 1:
        print("No split instances found")


def _groups(state: State, verbose: int) -> None:
    rows = [_row(state, at, view) for at, view in state.split()]
    if verbose > 1:
        head = [
            "Group",
            "Nodes",
            "Instances",
            "Bad_Nodes",
            "Bad_Instances",
            "N+1",
            "Score",
        ]
        right = [False, True, True, True, True, False, True]
        print(
            "Node group information:\n" + reports.table([head, *rows], right, "  "),
            end="",
        )
    happy = all(row[5] == "True" for row in rows)
    print("Cluster is N+1 " + ("happy" if happy else "unhappy"))


def _row(state: State, at: int, view: State) -> list[str]:
    bad = view.failing
    return [
        state.groups[at].name,
        str(len(view.view)),
        str(len(view.members)),
        str(len(bad)),
        str(len(people_on(bad))),
        str(not bad),
        fixed(score(view.seen), 8),
    ]
