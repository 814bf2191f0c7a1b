# SPDX-License-Identifier: BSD-2-Clause
"""The survival certificate, printed: who restarts where after each loss."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools.values import counted, verbosity
from moorage.htools.constants import Mirror
from moorage.htools.constraints.violation import located, nearest
from moorage.htools.state import State
from moorage.htools.survival.certificate import (
    ANEW,
    Certificate,
    certify,
    how,
    second_copies,
    without_data,
)
from moorage.htools.survival.explain_loss import Loss
from moorage.htools.survival.n1 import Restart
from moorage.htools.survival.pool import Pool, disks_in, stranded_without, unsaid
from moorage.units import shortened

_ANEW: Final = ("set up anew", "made anew, without its data")
_SHOWN: Final = 4
"""Nodes, or names, that one line or list shows without -v."""


def report(options: Options, state: State) -> int:
    """Print the certificate; the status is 1 when some node cannot be lost.

    Without the capacity checks the status is 0. With -q only trouble is printed, with
    -v everything.
    """
    found, style = certify(state), options.survive
    if style == "json":
        print(json.dumps(found.values(), indent=2))
    else:
        lines = _lines(found, verbosity(options))
        print("".join(line + "\n" for line in lines), end="")
    if options.html is not None:
        from moorage.cli.htools.drawing import save_survival  # noqa: PLC0415 - start-up

        save_survival(options, found, sys.stderr if style == "json" else sys.stdout)
    return 1 if not options.no_capacity_checks and not found else 0


def _lines(found: Certificate, verbose: int) -> Iterator[str]:
    for loss in found.nodes:
        yield from _node(found.state, loss, verbose)
    for loss in found.units:
        yield from _unit(found.state, loss, verbose)
    for pool in found.pools:
        yield from _pool(found.state, pool, verbose)
    yield from _summary(found, verbose)


def _summary(found: Certificate, verbose: int) -> Iterator[str]:
    """Tell what cannot be lost, and with which nodes data goes."""
    bad = [loss for loss in found.nodes if loss.stranded]
    total = counted(len(found.nodes), "node")
    if bad:
        names = [found.state.nodes[loss.node].name for loss in bad]
        yield f"{len(bad)} of {total} cannot be lost: {_listed(names, verbose)}"
    else:
        yield f"Any one of {total} can be lost." if found.nodes else "There is no node."
    holders = [loss for loss in found.nodes if without_data(found.state, loss)]
    if holders:
        names = [found.state.nodes[loss.node].name for loss in holders]
        people = {at for loss in holders for at in without_data(found.state, loss)}
        yield (
            f"{len(holders)} of {total} take the data of "
            f"{counted(len(people), 'instance')} with them: {_listed(names, verbose)}"
        )


def _node(state: State, loss: Loss, verbose: int) -> Iterator[str]:
    node = state.nodes[loss.node]
    notes = [f"group {state.groups[node.group].name}"] if len(state.split()) > 1 else []
    notes += ["it is offline or drained already"] if node.offline else []
    about = f" ({', '.join(notes)})" if notes else ""
    if loss.stranded:
        yield f"loss of {node.name}{about}: NOT everyone restarts"
    elif verbose >= 1:
        verdict = "everyone restarts" if loss.outcomes else "nobody is on it"
        yield f"loss of {node.name}{about}: {verdict}"
    yield from _outcomes(state, loss, verbose)
    yield from _data(state, loss, f"loss of {node.name}{about}: ", verbose)


def _data(state: State, loss: Loss, who: str, verbose: int) -> Iterator[str]:
    """Tell whose data is lost; with -q nothing says what the line is about before."""
    names = [state.insts[at].name for at in without_data(state, loss)]
    if names:
        start = "  " if verbose >= 1 or loss.stranded else who
        yield f"{start}the data is lost of {_listed(names, verbose)}"


def _outcomes(state: State, loss: Loss, verbose: int) -> Iterator[str]:
    for one in loss.outcomes:
        if one.node < 0:
            yield from _stranded(state, one, verbose)
        elif verbose >= 1:
            yield f"  {_restart(state, one, verbose)}"
    if loss.stranded:
        yield from _way(state, loss)


def _restart(state: State, one: Restart, verbose: int) -> str:
    inst = state.insts[one.inst]
    notes = [_ANEW[inst.mirror is Mirror.NONE]] if how(inst) == ANEW else []
    notes += [f"{one.left} MiB of memory left there"] if verbose > 1 else []
    about = f" ({', '.join(notes)})" if notes else ""
    return f"{inst.name} -> {state.nodes[one.node].name}{about}"


def _stranded(state: State, one: Restart, verbose: int) -> Iterator[str]:
    name = state.insts[one.inst].name
    if not one.reasons:
        yield f"  {name} is stranded: no node is left"
        return
    yield f"  {name} is stranded"
    order = nearest(one.reasons)
    shown = order if verbose > 1 else order[:_SHOWN]
    yield from (f"    {located(state, found)}" for found in shown)
    if len(order) > len(shown):
        yield f"    and {len(order) - len(shown)} more nodes (-v shows them)"


def _way(state: State, loss: Loss) -> Iterator[str]:
    """Tell whether it is the order of restarts alone that strands somebody."""
    if loss.way is not None:
        places = ", ".join(
            f"{state.insts[inst].name} -> {state.nodes[node].name}"
            for inst, node in loss.way
        )
        yield f"  restarted one by one; by hand there is a way: {places}"
    elif not loss.searched:
        yield "  restarted one by one; not every other way was tried"


def _unit(state: State, loss: Loss, verbose: int) -> Iterator[str]:
    unit, name = "/".join(loss.unit or ()), state.nodes[loss.node].name
    if loss.stranded:
        yield f"loss of {unit} on {name}: NOT everyone restarts"
    elif verbose >= 1:
        verdict = "everyone restarts" if loss.outcomes else "nobody stops"
        yield f"loss of {unit} on {name}: {verdict}"
    yield from _outcomes(state, loss, verbose)
    yield from _data(state, loss, f"loss of {unit} on {name}: ", verbose)
    copies = [state.insts[at].name for at in second_copies(state, loss)]
    if copies and verbose >= 1:
        yield f"  without a second copy then: {_listed(copies, verbose)}"


def _pool(state: State, pool: Pool, verbose: int) -> Iterator[str]:
    people = [state.insts[at] for at in stranded_without(state, pool.name)]
    title = f"loss of pool {'/'.join(pool.name)} ({counted(len(pool.nodes), 'node')})"
    if people:
        count = counted(len(people), "instance")
        yield f"{title}: {count} stranded, for their disks are there"
    elif verbose >= 1:
        yield f"{title}: nobody has disks there"
    if verbose < 1:
        return
    shown = people if verbose > 1 else people[:_SHOWN]
    for inst in shown:
        gone = disks_in(state, inst, pool.name)
        part = "all of its disks" if len(gone) == len(inst.wants) else _disks(gone)
        yield f"  {inst.name} ({part})"
    if len(people) > len(shown):
        yield f"  and {len(people) - len(shown)} more (-v shows them)"
    doubtful = [state.insts[at].name for at in unsaid(state, pool.name)]
    if doubtful:
        yield f"  do not say which pool they use: {_listed(doubtful, verbose)}"


def _disks(numbers: Sequence[int]) -> str:
    return ("disk " if len(numbers) == 1 else "disks ") + ", ".join(map(str, numbers))


def _listed(names: Iterable[str], verbose: int) -> str:
    names = list(names)
    return shortened(names, len(names) if verbose > 1 else _SHOWN)
