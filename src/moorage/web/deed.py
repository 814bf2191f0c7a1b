# SPDX-License-Identifier: BSD-2-Clause
"""A deed: its opcode, the fields of its form, and the command that does the same."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlencode

from moorage.units import parse_size

from .values import ROOT, in_shell

Opcode = dict[str, Any]
Object = Mapping[str, Any]
"""The fields of an object, by name."""


class Why(NamedTuple):
    """Why something cannot be done, and the deed that would help; empty for none."""

    sentence: str
    deed: str = ""


class Input(NamedTuple):
    """A field of a form.

    Attributes
    ----------
    name
        The opcode's field.
    label
        What stands before it.
    option
        The command's; empty for an operand.
    pick
        The kind of objects that it names one of.
    fits
        A filter of those that can be named; None for all.
    many
        Whether it takes several words.
    within
        Where the field holds several values by name, the one that is meant.
    kind, unit, words
        Of that one: its type, unit and meaning, as of a field.
    row
        Which one it is about, where a form makes several; None where it makes one.
    """

    name: str
    label: str
    option: str = ""
    pick: str = ""
    fits: Sequence[Any] | None = None
    many: bool = False
    within: str = ""
    kind: str = "str"
    unit: str = ""
    words: str = ""
    row: int | None = None

    @property
    def called(self) -> str:
        """Its name in the form."""
        parts = (self.name, self.row, self.within)
        return ".".join(str(one) for one in parts if one not in (None, ""))


class Deed(NamedTuple):
    """Something that can be done.

    Attributes
    ----------
    word
        Its name in addresses.
    kind
        Of the objects that it is done to.
    label
        What stands on its button.
    op, key
        The opcode, and its field that names the object.
    command
        Does the same, with the object, then operands, then options behind it.
    inputs
        The fields of its form.
    fixed
        Fields that are always so.
    why_not
        Says why it is pointless, of an object's fields; None for no reason.
    destroys
        Whether data, or an object, is gone afterwards.
    last
        Whether the command names the object behind its operands.
    makes
        Whether it makes an object, and is done to none.
    several
        A field of which a form can have several rows, and what one is called.
    """

    word: str
    kind: str
    label: str
    op: str
    key: str
    command: str
    inputs: tuple[Input, ...] = ()
    fixed: Mapping[str, Any] = {}
    why_not: Callable[[Object], Why | None] = lambda _: None
    destroys: bool = False
    last: bool = False
    makes: bool = False
    several: tuple[str, str] = ("", "")

    def with_rows(self, rows: int) -> "Deed":
        """Return the same, with so many rows of what it can have several of.

        >>> from moorage.web.deeds import named
        >>> [one.called for one in named("instance", "add").with_rows(2).inputs][-3:]
        ['disks.1.provider', 'disks.1.pool', 'disk_template']
        """
        name, _ = self.several
        before = [one for one in self.inputs if one.name != name]
        each = [one for one in self.inputs if one.name == name]
        at = self.inputs.index(each[0]) if each else 0
        made = [one._replace(row=row) for row in range(rows) for one in each]
        return self._replace(inputs=(*before[:at], *made, *before[at:]))

    def href(self, *on: object) -> str:
        """Return where it is done to some objects.

        >>> from moorage.web.deeds import named
        >>> named("instance", "migrate").href("web1")
        '/ui/do/instance/migrate?on=web1'
        """
        query = urlencode([("on", str(one)) for one in on])
        place = f"{ROOT}/do/{self.kind}/{self.word}"
        return f"{place}?{query}" if query else place

    def opcode(self, on: str, given: Mapping[str, Any]) -> Opcode:
        """Return the request, of an object and what was filled in."""
        named = {} if self.makes else {self.key: on}
        return {"OP_ID": self.op, **self.fixed, **named, **given}

    def typed(self, on: str, words: Mapping[str, Sequence[str]]) -> str:
        """Return the command that does the same.

        Parameters
        ----------
        words
            What was filled in, by the names of fields; a switch has ``on``.
        """
        options, operands = list[str](), list[str]()
        parts: dict[tuple[str, int | None], list[str]] = {}
        for one in self.inputs:
            filled = [word for word in words.get(one.called, ()) if word]
            if not filled:
                continue
            if one.within:
                known = parts.setdefault((one.option, one.row), [])
                known.append(f"{one.within}={filled[0]}")
            elif not one.option:
                operands += filled
            elif filled == ["on"]:
                options.append(one.option)
            else:
                options += [one.option, *filled]
        rows = count()
        for (option, row), values in parts.items():
            number = "" if row is None else f"{next(rows)}:"
            options += [option, number + ",".join(values)]
        named = [*operands, on] if self.last else [on, *operands]
        words_ = operands if self.makes else named
        if any(one.startswith("-") for one in words_):
            words_ = ["--", *words_]  # a tag may look like an option
        return f"{self.command} {in_shell([*options, *words_])}".rstrip()


def value_of(kind: str, unit: str, words: Sequence[str]) -> Any:  # noqa: ANN401
    """Return what a field is filled in with, of its words; the master judges it.

    Parameters
    ----------
    kind, unit
        The field's type, and its unit.

    Raises
    ------
    BadInput
        If a size is none.

    >>> value_of("int", "MiB", ["1G"]), value_of("tuple[str]", "", ["a", "b"])
    (1024, ['a', 'b'])
    """
    if kind.startswith(("tuple", "list")):
        return list(words)
    (word,) = words
    if unit == "MiB":
        return parse_size(word)
    if "bool" in kind:
        return word in ("on", "yes", "true")
    for read in (int, float):
        if read.__name__ in kind:
            try:
                return read(word)
            except ValueError:
                return word
    return word
