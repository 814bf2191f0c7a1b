# SPDX-License-Identifier: BSD-2-Clause
"""Pages that say what to type on machines: ``NAME# LINE``, and what that prints."""

import re
from dataclasses import dataclass, field
from pathlib import Path

LINE = re.compile(r"(all|node\d|cloud)# (.*)")


@dataclass
class Step:
    """A line to type, where, and what it prints."""

    where: str
    text: str
    shown: list[str] = field(default_factory=list)


def chapters(page: Path) -> dict[str, list[Step]]:
    """Return the steps of a page by their headings."""
    found: dict[str, list[Step]] = {}
    steps: list[Step] = []
    inside = False
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            steps = found[line[3:]] = []
        elif line.startswith("```"):
            inside = line == "```shell-session"
        elif inside and (typed := LINE.match(line)):
            steps.append(Step(*typed.groups()))
        elif inside and line.startswith("> ") and not steps[-1].shown:
            steps[-1].text += f"\n{line[2:]}"
        elif inside:
            steps[-1].shown.append(line)
    return found
