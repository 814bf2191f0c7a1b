# SPDX-License-Identifier: BSD-2-Clause
"""Writing the picture of a run where its options say, with where it comes from."""

import re
import shlex
import sys
from collections.abc import Sequence
from typing import Final, TextIO

from moorage.cli.declaration import Options
from moorage.cli.htools import source
from moorage.htools.loader import shared_suffix
from moorage.htools.metrics import score
from moorage.htools.placement.space import Filled, Size
from moorage.htools.plans.balancing import Plan
from moorage.htools.state import State
from moorage.htools.survival.certificate import Certificate
from moorage.pictures.balancing import balancing
from moorage.pictures.document import Origin, document
from moorage.pictures.filling import filling
from moorage.pictures.ink import Picture
from moorage.pictures.survival import survival

_SECRET: Final = re.compile(r"//[^/@\s]*@")
"""User and password in an address."""


def save_plan(options: Options, group: str, found: Plan | State) -> None:
    """Write the picture of a balancing plan, and say so.

    A state is drawn as the plan that leaves it as it is.
    """
    plan = found if isinstance(found, Plan) else _idle(found)
    made = origin("hbal", options.typed, options, plan.start, group)
    _save(options.html, balancing(plan), made, sys.stdout)


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
    made = origin("hspace", options.typed, options, start)
    _save(options.html, filling(start, *fillings, size), made, out)


def save_survival(options: Options, found: Certificate, out: TextIO) -> None:
    """Write the picture of a survival certificate, and say so on `out`."""
    made = origin("hcheck", options.typed, options, found.state)
    _save(options.html, survival(found), made, out)


def _save(path: str, picture: Picture, made: Origin, out: TextIO) -> None:
    source.write(path, document(picture, made))
    print(f"The picture has been written to file '{path}'", file=out)


def origin(
    program: str,
    words: Sequence[str],
    options: Options,
    state: State,
    group: str = "",
) -> Origin:
    """Return where the picture of a run comes from; `words` is what was typed."""
    return Origin(
        command=_SECRET.sub("//", shlex.join([program, *_given(words)])),
        cluster=_SECRET.sub("//", _source(options)),
        group=group,
        suffix=shared_suffix(state),
    )


def _given(words: Sequence[str]) -> list[str]:
    """Return a command line without the name of the picture."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and not word.startswith("--html"):
            kept.append(word)
        skip = word == "--html" and not skip
    return kept


def _source(options: Options) -> str:
    """Return where the cluster came from."""
    if getattr(options, "simulate", None):
        return f"simulated {' and '.join(options.simulate)}"
    named = (getattr(options, name, None) for name in ("text", "ialloc", "rapi"))
    found = next(filter(None, named), "this cluster")
    return "standard input" if found == "-" else str(found)
