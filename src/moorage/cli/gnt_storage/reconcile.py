# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage reconcile``: what is stored against what is known, and the repair."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import fetch
from moorage.cli.options import ASKING, JOB
from moorage.cli.table import NORMAL, Look, table
from moorage.units import format_size

_OP = "OP_STORAGE_RECONCILE"
_TITLES = ("State", "Storage", "Volume", "Size", "Nodes", "Disk", "Why")
Found = Mapping[str, Any]


def reconcile(call: Call) -> int:
    """Show what does not fit, and a plan; carry it out if asked to.

    Fails if something does not fit and is left so.
    """
    asked: dict[str, Any] = {"providers": list(call.option("provider") or ())}
    if call.option("all"):
        asked["everything"] = True
    only_shown = call.option("dry_run")
    call.options.dry_run = False  # to look changes nothing, and the plan comes of it
    found = fetch(call, _OP, **asked)
    plan = found["plan"]
    if call.option("json") and (only_shown or not call.option("apply")):
        call.terminal.print(json.dumps(found, indent=2))
        return _status(found)
    if not call.option("json"):
        for line in _lines(found):
            call.terminal.print(line)
    if not call.option("apply") or not plan or only_shown:
        return _status(found)
    many = f"these {len(plan)} steps" if len(plan) > 1 else "this step"
    call.ask(f"Carry out {many}? Nothing is deleted.")
    after = fetch(call, _OP, **asked, repair=plan)
    left = fetch(call, _OP, **asked)["plan"]
    told = json.dumps(after, indent=2) if call.option("json") else "The plan is done"
    if left and not call.option("json"):
        told = "\n".join(("This is left to do:", *_steps(left)))
    call.terminal.print(told)
    return int(bool(left))


def _status(found: Found) -> int:
    """Return 1 if something does not fit."""
    return int(bool(found["plan"] or found["doubts"]))


def _lines(found: Found) -> Iterator[str]:
    """Yield the table, what could not be looked at, and the plan."""
    rows = [*_volumes(found), *_missing(found), *_attached(found)]
    if rows:
        columns = [{"title": title, "kind": "text"} for title in _TITLES]
        cells = [[(NORMAL, text) for text in row] for row in rows]
        yield from table(columns, cells, Look())
    counts = found["counts"]
    yield ", ".join(f"{counts[state]} {state}" for state in sorted(counts))
    yield from _unlooked(found["storages"])
    yield from _unasked(found["unasked"])
    yield from (f"Nothing is concluded: {doubt}" for doubt in found["doubts"])
    yield "Plan:" if found["plan"] else "There is nothing to do"
    yield from _steps(found["plan"])


def _steps(plan: Sequence[Found]) -> Iterator[str]:
    return (f"  - {one['what']}" for one in plan)


def _unlooked(storages: Sequence[Found]) -> Iterator[str]:
    """Yield what has disks and could not be looked at, all its nodes in a line."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for one in storages:
        if one["problem"] and one["used"]:
            first, *rest = one["problem"].splitlines()
            why = f"{first} {rest[-1]}" if rest else first
            where = f"{one['template']} {one['unit']}"
            nodes.setdefault((where, why), []).append(one["node"])
    for (where, why), names in nodes.items():
        yield f"Not looked at: {where} on {', '.join(names)}: {why}"


def _unasked(names: Sequence[str]) -> Iterator[str]:
    """Yield what could tell of volumes, and has no disks and no pools."""
    if names:
        again = " ".join(f"--provider {name}" for name in names)
        yield f"Not asked: {', '.join(names)} (gnt-storage reconcile {again})"


def _volumes(found: Found) -> Iterator[Sequence[str]]:
    for one in found["volumes"]:
        size = "?" if one["size"] is None else format_size(one["size"])
        why = one["why"] or one["note"] or "-"
        disk = one["name"] or "-"
        nodes = ",".join(one["nodes"])
        yield (*(one["state"], one["template"], one["volume"], size, nodes, disk), why)


def _missing(found: Found) -> Iterator[Sequence[str]]:
    for one in found["missing"]:
        why = "it is quarantined already" if one["quarantine"] else "-"
        disk, nodes = one["name"] or one["disk"], ",".join(one["nodes"])
        yield "missing", "-", one["volume"], "-", nodes, disk, why


def _attached(found: Found) -> Iterator[Sequence[str]]:
    for one in found["attached"]:
        why = f"{one['why']}, and a guest there has it" if one["used"] else one["why"]
        disk = one["name"] or one["disk"]
        yield "attached", "-", one["path"] or "-", "-", one["node"], disk, why


COMMANDS = (
    Command(
        "reconcile",
        reconcile,
        (),
        (
            Option(("--apply",), "carry the plan out, when it was shown and agreed to"),
            Option(("--all",), "show the volumes that are in order, too"),
            Option(
                ("--provider",),
                "an ExtStorage provider that has no disks yet; may be repeated",
                "NAME",
                repeats=True,
            ),
            *ASKING,
            *JOB,
        ),
        examples={
            "gnt-storage reconcile": "look; fail if something does not fit",
            "gnt-storage reconcile --apply": "show the plan, ask, carry it out",
        },
    ),
)
