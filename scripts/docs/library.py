# SPDX-License-Identifier: BSD-2-Clause

"""The page of the client library, from its docstrings."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from declared import Lines, code, table

from moorage import client
from moorage.client import Client, Door, Socket, door
from moorage.client.told import Change, Entry, Event, Field, Job, Table
from moorage.jobs.words import about, attributes, plain

_SECTION = re.compile(r"\n\n(Parameters|Returns|Raises|Attributes)\n-+\n")


def methods() -> Lines:
    """Yield each method of the clients, in the order of the class."""
    for name, one in vars(Client).items():
        if inspect.isfunction(one) and not name.startswith("_"):
            yield from _described(f"{name}{_signature(one)}", one)


def door_function() -> Lines:
    """Yield what leads to a cluster behind a door."""
    yield from _described(f"door{_signature(door)}", door)


def values() -> Lines:
    """Yield the records that clients take and return, with their fields."""
    kinds: tuple[Any, ...] = (Table, Field, Job, Change, Entry, Event, Door, Socket)
    for kind in kinds:
        yield from (f"### {kind.__name__}", "", f"{about(kind)}.", "")
        told, types = attributes(kind), get_type_hints(kind)
        rows = [
            [code(name), code(_name(types[name])), told.get(name, "")]
            for name in kind._fields
        ]
        yield from table(("field", "type", "meaning"), rows)
        for name, one in vars(kind).items():
            if inspect.isfunction(one) and not name.startswith("_"):
                yield from _described(f"{name}{_signature(one)}", one, "####")


def loaded() -> Lines:
    """Yield what a program imports."""
    names = ", ".join(code(name) for name in client.__all__)
    yield f"`moorage.client` has {names}; `moorage.client.aio` has `AsyncClient`."


def _signature(one: Callable[..., Any]) -> str:
    found = inspect.signature(one)
    kept = [each for each in found.parameters.values() if each.name != "self"]
    text = str(found.replace(parameters=kept))
    return re.sub(r"\b(?:collections\.abc|typing|moorage(?:\.\w+)+)\.", "", text)


def _name(kind: Any) -> str:  # noqa: ANN401 - any annotation
    text = (
        kind.__name__ if isinstance(kind, type) and not _is_generic(kind) else str(kind)
    )
    return re.sub(r"\b(?:collections\.abc|typing|moorage(?:\.\w+)+)\.", "", text)


def _is_generic(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    return hasattr(kind, "__origin__")


def _described(head: str, thing: object, level: str = "###") -> Lines:
    yield from (f"{level} `{head}`", "")
    text, *sections = _SECTION.split(_without_examples(inspect.getdoc(thing) or ""))
    for paragraph in text.split("\n\n"):
        yield from (plain(paragraph), "")
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Raises":
            yield from _raised(body)
        else:
            yield from _listed(body)


def _without_examples(text: str) -> str:
    return re.sub(r"\n\n>>> .*?(?=\n\n|\Z)", "", text, flags=re.DOTALL)


def _listed(body: str) -> Lines:
    for name, words in _entries(body):
        yield f"- `{name}`: {words}"
    yield ""


def _raised(body: str) -> Lines:
    for name, words in _entries(body):
        yield f"- raises `{name}`: {words}"
    yield ""


def _entries(body: str) -> Iterator[tuple[str, str]]:
    """Yield names, and what is said of them."""
    for part in re.split(r"\n(?=\S)", body.strip()):
        name, _, words = part.partition("\n")
        yield name, plain(" ".join(words.split()))
