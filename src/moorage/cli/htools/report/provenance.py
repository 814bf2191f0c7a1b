# SPDX-License-Identifier: BSD-2-Clause
"""Where a picture comes from: program, cluster, options as typed."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools.report.html import Markup, el
from moorage.htools.loader import shared_suffix
from moorage.htools.state import State

_SECRET: Final = re.compile(r"//[^/@\s]*@")
"""User and password in an address."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a picture was made from.

    Attributes
    ----------
    command : str
        The command line, but for the name of the picture.
    cluster : str
        The file or address that it was read from.
    group : str
        The node group; empty for all.
    suffix : str
        The end that all names share and that is not printed.
    """

    program: str
    command: str
    cluster: str
    group: str = ""
    suffix: str = ""

    @property
    def name(self) -> str:
        """The cluster, and the group if there is one."""
        return f"{self.cluster}, group {self.group}" if self.group else self.cluster

    def header(self, title: str, lead: str) -> Markup:
        """Return the head of a report."""
        ends = f" All names end in {self.suffix}." if self.suffix else ""
        return el(
            "header",
            el("p", self.name, class_="kicker"),
            el("h1", title),
            el("p", lead, class_="lead"),
            el("p", "Made by ", el("code", self.command), f".{ends}", class_="small"),
        )


def origin(
    program: str,
    words: Sequence[str],
    options: Options,
    state: State,
    group: str = "",
) -> Origin:
    """Return where the picture of a run comes from; `words` is what was typed."""
    return Origin(
        program=program,
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
