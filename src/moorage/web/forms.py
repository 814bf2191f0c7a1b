# SPDX-License-Identifier: BSD-2-Clause
"""A deed's form: what is filled in, its command, what would be done, and then the jobs.

One form is for one object or for several; each gets a job of its own.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlencode

from msgspec import json

from moorage.client.asks import new_key
from moorage.errors import BadInput, MoorageError, NotFound
from moorage.jobs.fields import Field

from . import deeds
from .deed import Deed, Input, Opcode, value_of
from .jobs import STEPS
from .kinds import KINDS
from .tables import natural
from .values import ROOT, address, called
from .visit import Elsewhere, Page, Visit, Wish

ROWS = 16
"""Rows of a form that makes several: as many disks as an instance has."""
MOST = 200
"""Objects of one form."""
_PICKED = 500
"""Names that are offered; more are typed."""
_COMMANDS = 50_000
"""Characters of all commands of a form, from which on the others are left out."""
_PATIENCE = 20.0
"""Seconds in which it must be known what would be done."""


class Shown(NamedTuple):
    """A field as it is shown.

    Attributes
    ----------
    control
        ``switch``, ``choice``, ``text`` or ``number``.
    hint
        What it means, with its unit.
    options
        What can be chosen, or is offered: values, and what they are called.
    words
        What was filled in.
    about
        What several fields are about together; empty for the object itself.
    """

    name: str
    label: str
    control: str
    hint: str
    options: Sequence[tuple[str, str]]
    words: str
    required: bool
    about: str = ""


class Told(NamedTuple):
    """What would become of an object: steps with their nodes, or why it is refused.

    Attributes
    ----------
    left
        Steps that are not shown.
    """

    name: str
    steps: Sequence[Mapping[str, Any]]
    error: MoorageError | None = None
    left: int = 0


async def form(visit: Visit) -> Page:
    """Show the form of a deed."""
    deed = _deed(visit)
    on = [] if deed.makes else _objects(visit.query)
    return await _page(visit, deed, on, {}, ())


async def chosen(visit: Visit) -> Elsewhere:
    """Go to the form of the deed that was chosen for selected rows."""
    found = deeds.named(visit.path["kind"], visit.asked("deed"))
    if found is None:
        raise NotFound("there is no such deed")
    return Elsewhere(found.href(*_objects(visit.query)))


async def answered(visit: Visit) -> Page | Elsewhere:
    """Say what would be done, or do it."""
    rows = _rows(visit)
    deed = _deed(visit, rows)
    on = [] if deed.makes else _objects(visit.form)
    words = {
        one.called: [word.strip() for word in visit.form.get(one.called, ())]
        for one in deed.inputs
    }
    if visit.filled("step") == "more":
        return await _page(visit, _deed(visit, min(rows + 1, ROWS)), on, words, ())
    wish = visit.wish(deed.op)
    try:
        given = given_of(deed, wish.fields, words)
    except MoorageError as error:
        return await _page(visit, deed, on, words, (), error)
    ops = [deed.opcode(one, given) for one in on or [""]]
    unseen: MoorageError | None = None
    if visit.filled("step") == "do" and not wish.refused:
        if visit.filled("looked") == _mark(ops):
            return await _done(visit, deed, on, words, ops)
        unseen = BadInput(
            "the form says what nobody has looked at yet: nothing was done",
            hint="this is what it would do now",
        )
    told = await look(visit, ops, on or [""])
    return await _page(visit, deed, on, words, told, unseen, looked=_mark(ops))


def _mark(ops: Sequence[Opcode]) -> str:
    """Return what a form keeps of what was looked at: only that is done."""
    return hashlib.sha256(json.encode(ops, order="sorted")).hexdigest()


def _rows(visit: Visit) -> int:
    """Return how many rows a form has of what it can make several of."""
    words = visit.filled("rows", "1")
    known = words.isascii() and words.isdecimal() and len(words) < 3
    return min(max(1, int(words)), ROWS) if known else 1


def _deed(visit: Visit, rows: int = 1) -> Deed:
    found = deeds.named(visit.path["kind"], visit.path["deed"])
    if found is None:
        raise NotFound("there is no such deed")
    return found.with_rows(rows)


def _objects(words: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the objects that it is about, each once.

    Raises
    ------
    BadInput
        If there are none, or too many.
    """
    found = list(dict.fromkeys(one for one in words.get("on", ()) if one))
    if not found:
        raise BadInput("nothing is selected", hint="select rows of the table first")
    if len(found) > MOST:
        raise BadInput(f"{len(found)} are selected: at most {MOST} go together")
    return found


def given_of(
    deed: Deed, fields: Mapping[str, Field], words: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the opcode's fields that were filled in.

    Raises
    ------
    BadInput
        If a size is none.
    """
    found: dict[str, Any] = {}
    rows: dict[tuple[str, int | None], dict[str, Any]] = {}
    for one in deed.inputs:
        filled = [word for word in _split(one, words) if word]
        if not filled:
            continue
        field = fields[one.name]
        if not one.within:
            found[one.name] = value_of(field.type, field.unit, filled)
            continue
        value = value_of(one.kind, one.unit, filled)
        if one.row is None:
            found.setdefault(one.name, {})[one.within] = value
        else:
            rows.setdefault((one.name, one.row), {})[one.within] = value
    for (name, _), row in rows.items():
        found.setdefault(name, []).append(row)
    return found


async def look(visit: Visit, ops: Sequence[Opcode], on: Sequence[str]) -> list[Told]:
    """Return what the master would do, without doing it."""
    dry = [[{**one, "dry_run": True}] for one in ops]
    numbers = await visit.client.submit_many(dry)
    return list(
        await asyncio.gather(
            *(_told(visit, *pair) for pair in zip(on, numbers, strict=True))
        )
    )


def _few(told: Sequence[Told]) -> Iterator[Told]:
    """Yield what would become of objects with as many steps as a page holds."""
    most = max(1, STEPS // max(1, len(told)))
    for one in told:
        yield one._replace(steps=one.steps[:most], left=len(one.steps[most:]))


async def _told(visit: Visit, name: str, number: int | MoorageError) -> Told:
    if isinstance(number, MoorageError):
        return Told(name, (), number)
    try:
        job = await visit.client.wait(number, _PATIENCE)
        (steps,) = job.outcome()
    except MoorageError as error:
        return Told(name, (), error)
    except TimeoutError:
        return Told(name, (), BadInput(f"job {number} has not said so yet"))
    return Told(name, steps or ())


async def _done(
    visit: Visit,
    deed: Deed,
    on: Sequence[str],
    words: Mapping[str, Sequence[str]],
    ops: Sequence[Opcode],
) -> Page | Elsewhere:
    """Make the jobs; the form's own key keeps a second click from making others."""
    key, made, refused = visit.filled("key") or new_key(), list[int](), list[Told]()
    for number, (name, one) in enumerate(zip(on or [""], ops, strict=True)):
        try:
            made.append(await visit.client.submit(one, key=f"{key}-{number}"))
        except MoorageError as error:
            refused.append(Told(name, (), error))
    if refused:
        return await _page(visit, deed, on, words, refused, made=made)
    return Elsewhere(jobs_address(made))


def jobs_address(numbers: Sequence[int]) -> str:
    """Return where some jobs are shown."""
    if len(numbers) == 1:
        return address("job", numbers[0])
    chosen = " or ".join(f"id == {one}" for one in numbers)
    return f"{ROOT}/job?{urlencode({'filter': chosen})}"


async def _page(  # noqa: PLR0913 - what a form shows
    visit: Visit,
    deed: Deed,
    on: Sequence[str],
    words: Mapping[str, Sequence[str]],
    told: Sequence[Told],
    error: MoorageError | None = None,
    *,
    made: Sequence[int] = (),
    looked: str = "",
) -> Page:
    wish, names = visit.wish(deed.op), await _names(visit, deed, on)
    shown = [await _shown(visit, one, wish, words, deed) for one in deed.inputs]
    known = dict(zip(on, names, strict=True))
    split = {one.called: _split(one, words) for one in deed.inputs}
    values = {
        "deed": deed,
        "kind": KINDS[deed.kind],
        "wish": wish,
        "on": list(zip(on, names, strict=True)),
        "inputs": [(about, list(group)) for about, group in groupby(shown, _about)],
        "rows": len({one.about for one in shown if one.about}),
        "more": deed.several[1],
        "commands": list(_commands(deed, names or [""], split)),
        "told": [one._replace(name=known.get(one.name, "")) for one in _few(told)],
        "error": error,
        "made": made,
        "key": visit.filled("key") or new_key(),
        "looked": looked,
    }
    return Page("deed", values, 400 if error or made else 200)


def _commands(
    deed: Deed, names: Sequence[str], words: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield the commands that do the same; a shell reads past what they end with."""
    size = 0
    for number, name in enumerate(names):
        if size > _COMMANDS:
            yield f"# and the same for {len(names) - number} more"
            return
        command = deed.typed(name, words)
        size += len(command)
        yield command


def _about(one: Shown) -> str:
    return one.about


def _split(one: Input, words: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what was filled in, word by word where it takes several."""
    filled = words.get(one.called, ())
    return [part for word in filled for part in (word.split() if one.many else [word])]


async def _names(visit: Visit, deed: Deed, on: Sequence[str]) -> list[str]:
    """Return what a command calls the objects.

    Raises
    ------
    NotFound
        If one is not there.
    """
    kind = KINDS[deed.kind]
    if kind.key == "name":
        return list(on)
    table = await visit.client.query(kind.name, (kind.key, "name"))
    rows = table.objects()
    shared = Counter(row["name"] for row in rows)
    by_key = {row[kind.key]: row["name"] for row in rows}
    keys = {row["name"]: row[kind.key] for row in rows}
    found = []
    for one in on:
        if one not in by_key and shared[one] > 1:
            raise BadInput(
                f"several {kind.many} are called '{one}': choose one of them"
            )
        key = one if one in by_key else keys.get(one)
        if key is None:
            raise NotFound(f"there is no {kind.name} called '{one}'")
        name = by_key[key]
        found.append(str(name if name and shared[name] == 1 else key))
    return found


async def _shown(
    visit: Visit, one: Input, wish: Wish, words: Mapping[str, Sequence[str]], deed: Deed
) -> Shown:
    field = wish.fields[one.name]
    if one.within:
        field = Field(one.called, one.kind, one.words, one.unit)
    filled = " ".join(words.get(one.called, ()))
    unit = {"MiB": "512M, 10G or 1.5T", "": ""}.get(field.unit, f"in {field.unit}")
    hint = " ".join(filter(None, (field.words.replace("`", ""), unit and f"({unit})")))
    options = [(word, word) for word in field.choices]
    control = "choice" if options else "text"
    if "bool" in field.type:
        control = "switch"
    elif one.pick:
        options = await _picked(visit, one)
    told = "" if one.row is None else f"{deed.several[1].capitalize()} {one.row}"
    needed = field.required
    return Shown(one.called, one.label, control, hint, options, filled, needed, told)


async def _picked(visit: Visit, one: Input) -> list[tuple[str, str]]:
    """Return the objects that a field can name."""
    kind = KINDS[one.pick]
    fits = list(one.fits) if one.fits else None
    table = await visit.client.query(kind.name, [kind.key, "name"], fits)
    found = [
        (str(row["name"] or row[kind.key]), called(kind, row["name"], row[kind.key]))
        for row in table.objects()
    ]
    return sorted(found, key=lambda pair: natural(pair[0]))[:_PICKED]
