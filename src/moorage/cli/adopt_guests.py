# SPDX-License-Identifier: BSD-2-Clause
"""``moorage adopt-guests``: guests that Ganeti started are taken over as they run."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.errors import BadInput

from .command import Call, Command, Operand, Option
from .follow import failures, fetch, opcode
from .options import ASKING, JSON
from .table import NORMAL, Look, table

_LOOK = "OP_CLUSTER_FOREIGN_GUESTS"
_ADOPT = "OP_INSTANCE_ADOPT_GUEST"
_TITLES = ("Node", "Guest", "Process", "State", "Why")


def _adopt(call: Call) -> int:
    """Show the guests that Ganeti started; take over those that can be, if agreed to.

    Fails if one is left, or a node did not answer.
    """
    only_shown = call.option("dry_run")
    call.options.dry_run = False  # to look changes nothing
    found = fetch(call, _LOOK)
    chosen = _chosen(found["guests"], call.words)
    if call.option("json"):
        call.show(found | {"guests": chosen}, ())
    else:
        _show(call, chosen, found["silent"])
    ready = [one["name"] for one in chosen if one["status"] == "ready"]
    left = any(one["status"] in {"restart", "unknown"} for one in chosen)
    if only_shown or not ready:
        return int(left or bool(ready or found["silent"]))
    many = f"these {len(ready)} guests" if len(ready) > 1 else f"guest {ready[0]}"
    call.ask(f"Take over {many}? They run on.")
    jobs = [[opcode(call, _ADOPT, {"instance_name": name})] for name in ready]
    answers = call.client.submit_many(jobs)
    failed = failures(call, dict(zip(ready, answers, strict=True)))
    for name in ready:
        if name not in failed:
            call.terminal.talk(f"Took over guest {name}")
    return int(bool(failed or left or found["silent"]))


def _chosen(
    guests: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return those that were named; all where none was."""
    unknown = sorted(set(names) - {one["name"] for one in guests})
    if unknown:
        raise BadInput(f"no node has a guest {unknown[0]} that Ganeti started")
    return [one for one in guests if not names or one["name"] in names]


def _show(
    call: Call, guests: Sequence[Mapping[str, Any]], silent: Mapping[str, str]
) -> None:
    rows = [
        (one["node"], one["name"], str(one["pid"]), one["status"], one["reason"] or "-")
        for one in guests
    ]
    if rows:
        columns = [{"title": title, "kind": "text"} for title in _TITLES]
        cells = [[(NORMAL, text) for text in row] for row in rows]
        for line in table(columns, cells, Look()):
            call.terminal.print(line)
    else:
        call.terminal.print("No node has a guest that Ganeti started")
    for node, why in silent.items():
        call.terminal.print(f"Not asked: {node}: {why}")


COMMANDS = (
    Command(
        "adopt-guests",
        _adopt,
        (Operand("INSTANCE", 0, None),),
        (
            Option(("--dry-run",), "show what there is, and change nothing"),
            *ASKING,
            JSON,
        ),
        examples={
            "moorage adopt-guests --dry-run": "look at all nodes",
            "moorage adopt-guests web1": "one guest",
        },
    ),
)
