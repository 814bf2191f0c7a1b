# SPDX-License-Identifier: BSD-2-Clause
"""hail: say where an instance goes, as an allocator of the cluster."""

import sys
from dataclasses import replace
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools import source
from moorage.errors import BadInput
from moorage.htools.fleet import Fleet
from moorage.htools.formats import iallocator
from moorage.htools.placement.allocate import Asking
from moorage.htools.placement.requests import Request, Response, answer
from moorage.htools.state import State

_SHOWN: Final = 20
"""Reasons that people read; programs get all of them."""


def run(options: Options) -> int:
    """Answer a request of the cluster."""
    if len(options.words) != 1:
        raise BadInput(
            "Only one argument is accepted (the input file)"
            if options.words
            else "This program needs an input file."
        )
    path = options.words[0]
    message = iallocator.parse(source.read_text(path), path)
    state = _state(options, message.fleet)
    _show(options, "Initial", state)
    source.save(options.save, "pre-ialloc", "before iallocator run", state)
    if message.request is None:
        raise BadInput(f"{path}: no request")
    asking = Asking(
        force=options.ignore_soft_errors,
        capacity=not options.no_capacity_checks,
        restrict=frozenset(options.restrict.split(",")) if options.restrict else None,
    )
    response = answer(state, message.request, asking)
    if options.explain:
        response = _explained(state, message.request, response, asking)
    print(iallocator.dump(response))
    _show(options, "Final", response.state)
    source.save(options.save, "post-ialloc", "after iallocator run", response.state)
    return 0


def _explained(
    state: State, request: Request, response: Response, asking: Asking
) -> Response:
    """Return the answer with its reasons; tell them to whoever is looking, too."""
    from moorage.htools.explain.answer import explain, explained  # noqa: PLC0415 - start-up

    told = explain(state, request, response, asking)
    for one in told:
        lines = "".join(f"  {line}\n" for line in one.sentences(_SHOWN))
        sys.stderr.write(f"{one.name}:\n{lines}" if one.name and lines else lines)
    return replace(response, explanation=explained(request, told))


def _state(options: Options, fleet: Fleet) -> State:
    if options.text or options.simulate:
        fleet = source.fleet(options)
    return source.ready(options, fleet).state


def _show(options: Options, when: str, state: State) -> None:
    if options.print_nodes is not None:
        from moorage.htools import reports  # noqa: PLC0415 - start-up time

        shown = reports.node_table(state.seen, options.print_nodes)
        sys.stderr.write(f"\n{when} cluster status:\n{shown}\n")
