# SPDX-License-Identifier: BSD-2-Clause
"""hroller: say which nodes can be rebooted at the same time."""

import sys

from moorage.cli.declaration import Options
from moorage.cli.htools import source
from moorage.cli.htools.values import verbosity
from moorage.errors import BadInput
from moorage.htools import colouring, rolling
from moorage.htools.loader import load, lookup
from moorage.htools.node import Node
from moorage.htools.rolling import Batch
from moorage.htools.state import State


def run(options: Options) -> int:
    """Print which nodes can be rebooted together."""
    state = _state(options)
    members = _members(options, state)
    if not members:
        raise BadInput("Cannot create node graph", hint="no node is left to reboot")
    graph = rolling.graph(
        state, [node.idx for node in members], offline=options.offline_maintenance
    )
    verbose = verbosity(options)
    if verbose > 2:
        print(f"Node Graph: {graph}")
    found = colouring.painted(graph)
    groups = rolling.batches(
        state,
        colouring.fewest(found),
        ignore_loners=options.ignore_non_redundant,
        evacuate=options.full_evacuation,
    )
    if verbose > 1:
        print(colouring.compared(found))
    _show(options, state, rolling.ordered(groups, members))
    return 0


def _state(options: Options) -> State:
    """Return the cluster; the file saved is the cluster as it was found."""
    fleet = source.fleet(options)
    found = load(fleet, source.reading(options)._replace(offline=()))
    if verbosity(options) > 0:
        source.warn(found.warnings)
    state = found.state
    _check_master(options, state)
    names = [node.name for node in state.nodes]
    gone = lookup(names, options.offline, "wrong node name(s) set as offline: {}")
    source.save(options.save, "original", "before hroller run", state)
    return state.with_nodes(
        node.copy(offline=True) for node in state.nodes if node.name in gone
    )


def _check_master(options: Options, state: State) -> None:
    masters = [node.name for node in state.nodes if node.master]
    if len(masters) > 1:
        shown = ",".join(f'"{name}"' for name in masters)
        raise BadInput(f"Found more than one master node: [{shown}]")
    if masters:
        return
    why = "No master node found (maybe not supported by backend)."
    if not options.force:
        raise BadInput(why)
    sys.stderr.write(f"Warning: {why}\n")


def _members(options: Options, state: State) -> list[Node]:
    """Return the nodes that are to be rebooted."""
    group = None if options.group is None else _group(options.group, state)
    tags = None if options.node_tags is None else set(options.node_tags.split(","))
    return [
        node
        for node in state.nodes
        if not node.offline
        and (group is None or node.group == group)
        and (tags is None or not tags.isdisjoint(node.tags))
        and not (options.skip_non_redundant and rolling.loners(state, node.idx))
    ]


def _group(asked: str, state: State) -> int:
    for at, group in enumerate(state.groups):
        if asked in (group.name, group.uuid):
            return at
    raise BadInput("Cannot find target group.")


def _show(options: Options, state: State, groups: list[Batch]) -> None:
    one_step = options.one_step_only
    if not options.no_headers:
        print("'First Reboot Group'" if one_step else "'Node Reboot Groups'")
    for batch in groups[:1] if one_step else groups:
        names = [state.nodes[at].name for at in batch.nodes]
        for line in names if one_step else [",".join(names)]:
            print(line)
        if options.print_moves:
            _show_moves(state, batch)


def _show_moves(state: State, batch: Batch) -> None:
    for inst in rolling.relocations(state, batch.state):
        nodes = [inst.p, inst.s] if rolling.is_redundant(inst) else [inst.p]
        print(f"  {inst.name} " + " ".join(state.nodes[at].name for at in nodes))
