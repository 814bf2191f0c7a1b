# SPDX-License-Identifier: BSD-2-Clause
"""``moorage audit``: who had what changed, and whether anybody changed that."""

import os
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from moorage.errors import BadInput, Conflict, Failed
from moorage.model.audit import Chain, Entry, checksum, decoded

from .command import Call, Command, Operand, Option
from .option_syntax import number
from .table import moment

_STORE = b"SQLite format 3\0"
_AFTER = Option(
    ("--after",),
    "those behind this entry alone",
    "NUMBER",
    convert=number("the number of an entry"),
)
_HEAD = Option(
    ("--head",),
    "an entry and its checksum, as they were noted elsewhere",
    "NUMBER:CHECKSUM",
)


def _lines(call: Call, after: int = 0) -> Iterator[bytes]:
    """Yield the lines behind an entry, from the master."""
    while True:
        lines = [one.encode() for one in call.client.audit(after)]
        if not lines:
            return
        yield from lines
        after = decoded(lines[-1]).number


def _list(call: Call) -> None:
    user, job = call.option("user"), call.option("job")
    for line in _lines(call, call.option("after") or 0):
        entry = decoded(line)
        if (user and entry.user != user) or (job and entry.job != job):
            continue
        shown = line.decode() if call.option("json") else _shown(entry)
        call.terminal.print(shown)


def _shown(entry: Entry) -> str:
    """Return an entry as a line for people."""
    what = f"{entry.what} job {entry.job}" if entry.job else entry.what
    more = [entry.status] if entry.status else []
    words = [what, *more, entry.about and f"({entry.about})"]
    who = " by ".join(word for word in (entry.user, entry.door) if word)
    told = " ".join(word for word in words if word)
    origin = f", {entry.origin}" if entry.origin else ""
    role = f" as {entry.role}" if entry.role else ""
    return f"{moment(entry.time)} {entry.number} {told}: {who}{role}{origin}"


def _check(call: Call) -> int:
    """Say whether each entry is the one that the next one was written behind."""
    known = _noted(call.option("head"))
    lines = _read(Path(call.words[0])) if call.words else _lines(call)
    chain, seen = Chain(), list(lines)
    faults = list(chain.read(seen))
    if known:
        faults += _compared(*known, seen, chain)
    for fault in faults:
        call.terminal.print(f"ERROR: {fault}")
    if not chain.last:
        call.terminal.print("The audit log is empty")
    elif not faults:
        span = f"entries {chain.first} to {chain.last}"
        call.terminal.print(f"No fault found in {span}")
    if chain.last:
        call.terminal.print(f"Head: {chain.last}:{chain.head}")
    return 1 if faults else 0


def _noted(text: str | None) -> tuple[int, str] | None:
    """Return the entry that was noted, and its checksum."""
    if text is None:
        return None
    word, colon, noted = text.partition(":")
    if not (colon and noted and word.isascii() and word.isdecimal()):
        raise BadInput(f"a head is NUMBER:CHECKSUM, not '{text}'")
    return int(word), noted.lower()


def _compared(
    wanted: int, noted: str, lines: Iterable[bytes], chain: Chain
) -> Iterator[str]:
    """Yield how an entry differs from what was noted of it."""
    if wanted > chain.last:
        yield f"the last entry is {chain.last}, and {wanted} was noted: some are cut"
    elif wanted < chain.first:
        yield f"entry {wanted} is not kept any more: the first one is {chain.first}"
    else:
        sums = (checksum(one) for one in lines if f'"number":{wanted},'.encode() in one)
        if noted not in sums:
            yield f"entry {wanted} is not the one that was noted"


def _read(path: Path) -> list[bytes]:
    """Return the lines in a file: a store, a copy of one, or what was saved."""
    try:
        with path.open("rb") as file:
            if file.read(len(_STORE)) == _STORE:
                return _stored(path)
            file.seek(0)
            return file.read().splitlines()
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from error


def _stored(path: Path) -> list[bytes]:
    store: Any = import_module("moorage.store")
    live = path.with_name(f"{path.name}-shm").exists()
    found = store.inspect(path, live=live)
    for fault in found.faults:
        raise Failed(f"{path} is damaged: {fault}")
    kind = store.audit.KIND
    lines = {name: one for (of, name), one in found.records.items() if of == kind}
    return [lines[name] for name in sorted(lines)]


def _save(call: Call) -> None:
    """Add what is new to a file, if it goes on where the file ends."""
    path = Path(call.words[0])
    saved = Chain()
    faults = list(saved.read(_read(path) if path.exists() else ()))
    if faults:
        raise Conflict(f"{path} is not what was saved: {faults[0]}")
    # The last one again: it must be the one that the file has.
    lines = list(_lines(call, max(0, saved.last - 1)))
    if saved.last and (not lines or checksum(lines[0]) != saved.head):
        there = decoded(lines[0]).number if lines else 0
        if there > saved.last:
            raise Conflict(
                f"{path} ends with entry {saved.last}, and the first one that is kept "
                f"is {there}: those between are gone",
                hint="save to another file, and save more often",
            )
        raise Conflict(
            f"entry {saved.last} of the cluster is not the one in {path}: the log was "
            "changed, or a master went on without its last entries"
        )
    new = lines[1:] if saved.last else lines
    try:
        _append(path, new)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}") from error
    for fault in saved.read(new):
        raise Conflict(f"the audit log of the cluster: {fault}")
    call.terminal.print(f"{path} has the entries {saved.first} to {saved.last}")


def _append(path: Path, lines: Iterable[bytes]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.writelines(line + b"\n" for line in lines)
        file.flush()
        os.fsync(handle)


COMMANDS = (
    Command(
        "audit list",
        _list,
        options=(
            _AFTER,
            Option(("--user",), "those of a user alone", "NAME"),
            Option(
                ("--job",),
                "those of a job alone",
                "JOB",
                convert=number("the number of a job"),
            ),
            Option(("--json",), "print the lines as they are kept"),
        ),
        examples={
            "moorage audit list --user anna": "what somebody had done",
            "moorage audit list --json --after 1200": "the lines, for programs",
        },
    ),
    Command(
        "audit check",
        _check,
        (Operand("FILE", least=0),),
        (_HEAD,),
        examples={
            "moorage audit check": "was anything changed?",
            "moorage audit check /root/audit.jsonl": "a file that was saved",
        },
    ),
    Command(
        "audit save",
        _save,
        (Operand("FILE"),),
        examples={"moorage audit save /root/audit.jsonl": "add what is new"},
    ),
)
