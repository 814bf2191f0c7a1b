# SPDX-License-Identifier: BSD-2-Clause
"""Templates, with each value escaped; and what pages refer to: style and script."""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from moorage.pictures.document import STYLE

from .kinds import KINDS, TITLES
from .values import ROOT, address, moment, short

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_TYPES |= {"mjs": "text/javascript"}


class Asset(NamedTuple):
    """A file that pages refer to.

    Attributes
    ----------
    tag
        Another one when the content is another one.
    """

    content: bytes
    type: str
    tag: str


@cache
def environment() -> Environment:
    """Return what makes pages of templates."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["titled"] = lambda field: TITLES.get(field.name, field.title)
    made.filters["short"] = short
    made.globals |= {
        "root": ROOT,
        "address": address,
        "moment": moment,
        "places": list(KINDS.values()),
        "tag": lambda name: found.tag.strip('"') if (found := asset(name)) else "",
    }
    return made


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a page."""
    return environment().get_template(f"{template}.html").render(values)


def asset(name: str) -> Asset | None:
    """Return a file that pages refer to; None if there is none of this name."""
    return _assets().get(name)


@cache
def _assets() -> Mapping[str, Asset]:
    found = dict(_below(files(__package__) / "static"))
    found["pictures.css"] = STYLE.encode()
    return {name: _asset(name, content) for name, content in found.items()}


def _below(place: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield all that is served: names with what their directories are called."""
    for one in place.iterdir():
        if one.is_dir():
            yield from _below(one, f"{before}{one.name}/")
        elif one.name.rpartition(".")[2] in _TYPES:
            yield before + one.name, one.read_bytes()


def _asset(name: str, content: bytes) -> Asset:
    mark = hashlib.sha256(content).hexdigest()[:16]
    return Asset(content, _TYPES[name.rpartition(".")[2]], f'"{mark}"')
