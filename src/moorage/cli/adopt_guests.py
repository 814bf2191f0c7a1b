# SPDX-License-Identifier: BSD-2-Clause
"""``moorage adopt-guests``: guests that Ganeti started are taken over as they run.

With ``--restart`` they are started anew instead, in waves.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Any

from moorage.errors import BadInput, MoorageError
from moorage.units import counted

from .command import Call, Command, Operand, Option
from .follow import failures, fetch, opcode
from .option_syntax import seconds
from .options import ASKING, JSON
from .table import NORMAL, Look, table

_LOOK = "OP_CLUSTER_FOREIGN_GUESTS"
_ADOPT = "OP_INSTANCE_ADOPT_GUEST"
_RESTART = "OP_INSTANCE_RESTART_GUEST"
_TITLES = ("Node", "Guest", "Process", "State", "Why")
_PLANNED = ("Wave", "Node", "Guest", "State", "Restart")
_DOWN = "down"
_OTHERS = frozenset({"ready", "unknown"})
"""Guests of Ganeti's that none restarts who names none."""
_RUNS = frozenset({"running", "paused"})
Rows = list[Mapping[str, Any]]


def _adopt(call: Call) -> int:
    """Show the guests that Ganeti started; take over those that can be, if agreed to.

    Fails if one is left, or a node did not answer.
    """
    only_shown = bool(call.option("dry_run"))
    call.options.dry_run = False  # to look changes nothing
    found = fetch(call, _LOOK)
    if call.option("restart"):
        chosen = _to_restart(call, found["guests"])
        return _restart(call, chosen, found["silent"], only_shown=only_shown)
    chosen = _chosen(found["guests"], call.words)
    if call.option("shutdown_timeout") is not None:
        raise BadInput("--shutdown-timeout goes with --restart")
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


def _restart(
    call: Call, chosen: Rows, silent: Mapping[str, str], *, only_shown: bool
) -> int:
    """Restart wave by wave, if agreed to, until one fails; those named, or all left.

    Fails if a guest that Ganeti started, and nobody took over, is there at the end.
    """
    others = () if call.words else [one for one in chosen if one["status"] in _OTHERS]
    if not call.words:
        chosen = [one for one in chosen if one["status"] in {"restart", _DOWN}]
    rows = sorted(chosen, key=lambda one: (one["wave"] or len(chosen) + 1, one["node"]))
    if call.option("json"):
        call.show({"guests": rows, "silent": silent}, ())
    else:
        cells = [
            [str(one["wave"] or "-"), *_where(one), one["restart"]] for one in rows
        ]
        _show_table(call, _PLANNED, cells, "No guest that Ganeti started is to restart")
        _show_silent(call, silent)
    if others:
        many = counted(len(others), "other guest")
        call.terminal.talk(f"Left as they are: {many}. moorage adopt-guests --dry-run")
    planned = [one for one in rows if one["wave"]]
    left = bool(others or silent) or len(planned) < len(rows)
    if only_shown or not planned:
        return int(left or bool(planned))
    waves = len({one["wave"] for one in planned})
    what = f"{counted(len(planned), 'guest')} in {counted(waves, 'wave')}"
    forced = sum(one["status"] == "adopted" for one in planned)
    more = f" Taken over before, so ended if it stays: {forced}." if forced else ""
    call.ask(f"Restart {what}? Each powers off, and is started anew.{more}")
    done = 0
    for turn in _turns(planned):
        failed = _restarted(call, turn)
        done += len(turn)
        if failed:
            rest = counted(len(planned) - done, "guest")
            call.terminal.talk(
                f"Stopped: {rest} of later turns were not touched. Say the same again "
                f"to go on, once {' and '.join(sorted(failed))} can be restarted"
            )
            return 1
    return int(left)


def _to_restart(call: Call, guests: Rows) -> Rows:
    """Return those that were named, or all, and instances that should run and do not.

    One whose start failed has no process that Ganeti started any more; of those named,
    one that runs, and is in no list, is done.
    """
    fields = ("name", "uuid", "pnode", "status")
    listed, known = {one["name"] for one in guests}, call.rows("instance", fields)
    down = [
        {
            "node": one["pnode"],
            "name": one["name"],
            "uuid": one["uuid"],
            "pid": 0,
            "status": _DOWN,
            "reason": "it should run, and does not",
            "files": [],
            "restart": "it is started",
            "wave": 1,
        }
        for one in known
        if one["status"] == "ERROR_down" and one["name"] not in listed
    ]
    done = {one["name"] for one in known if one["status"] in _RUNS} - listed
    wanted = [one for one in call.words if one not in done]
    return _chosen([*guests, *down], wanted) if wanted or not call.words else []


def _turns(planned: Rows) -> Iterator[Rows]:
    """Yield who restarts at the same time: of a wave's nodes one guest each."""
    for _, wave in groupby(planned, itemgetter("wave")):
        nodes: dict[str, Rows] = defaultdict(list)
        for one in wave:
            nodes[one["node"]].append(one)
        for turn in zip_longest(*nodes.values()):
            yield [one for one in turn if one]


def _restarted(call: Call, turn: Rows) -> Mapping[str, MoorageError]:
    """Restart guests at the same time; return what went wrong, by name."""
    given = call.option("shutdown_timeout")
    fields = {} if given is None else {"shutdown_timeout": given}
    names = [one["name"] for one in turn]
    jobs = [
        [opcode(call, _RESTART, {"instance_name": one["uuid"], **fields})]
        for one in turn
    ]
    answers = call.client.submit_many(jobs)
    failed = failures(call, dict(zip(names, answers, strict=True)))
    for one in turn:
        if one["name"] not in failed:
            call.terminal.talk(f"Restarted guest {one['name']} (wave {one['wave']})")
    return failed


def _where(one: Mapping[str, Any]) -> list[str]:
    return [one["node"], one["name"], one["status"]]


def _chosen(guests: Rows, names: Sequence[str]) -> Rows:
    """Return those that were named; all where none was."""
    unknown = sorted(set(names) - {one["name"] for one in guests})
    if unknown:
        raise BadInput(f"no node has a guest {unknown[0]} that Ganeti started")
    return [one for one in guests if not names or one["name"] in names]


def _show(call: Call, guests: Rows, silent: Mapping[str, str]) -> None:
    rows = [
        [one["node"], one["name"], str(one["pid"]), one["status"], one["reason"] or "-"]
        for one in guests
    ]
    _show_table(call, _TITLES, rows, "No node has a guest that Ganeti started")
    _show_silent(call, silent)


def _show_table(
    call: Call, titles: Sequence[str], rows: Sequence[Sequence[str]], none: str
) -> None:
    if not rows:
        call.terminal.print(none)
        return
    columns = [{"title": title, "kind": "text"} for title in titles]
    cells = [[(NORMAL, text) for text in row] for row in rows]
    for line in table(columns, cells, Look()):
        call.terminal.print(line)


def _show_silent(call: Call, silent: Mapping[str, str]) -> None:
    for node, why in silent.items():
        call.terminal.print(f"Not asked: {node}: {why}")


COMMANDS = (
    Command(
        "adopt-guests",
        _adopt,
        (Operand("INSTANCE", 0, None),),
        (
            Option(("--dry-run",), "show what there is, and change nothing"),
            Option(
                ("--restart",),
                "start those anew that cannot be taken over, or are named, in waves",
            ),
            Option(
                ("--shutdown-timeout",),
                "seconds that each of them has to power off",
                "SECONDS",
                seconds,
            ),
            *ASKING,
            JSON,
        ),
        examples={
            "moorage adopt-guests --dry-run": "look at all nodes",
            "moorage adopt-guests web1": "one guest",
            "moorage adopt-guests --restart --dry-run": "who restarts when",
        },
    ),
)
