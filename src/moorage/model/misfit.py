# SPDX-License-Identifier: BSD-2-Clause
"""What does not fit its type, in a sentence: a decoder's words are not a person's."""

import re

from msgspec import Struct, ValidationError

from .kinds import kinds_of

UNREADABLE = (ValueError, RecursionError)
"""What decoding something raises that is not what it should be."""
_PLACE = re.compile(r" - at (?:`key` in )?`\$(?P<path>[^`]*)`$")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_INVALID = re.compile(r"Invalid enum value (?P<value>.*)")
_RANGE = re.compile(r"Expected `(?:int|float)` (?P<sign><=|>=) (?P<end>.*)")
_ENDS = {">=": "at least", "<=": "at most"}
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "a map of names and values",
}


def misfit(
    error: ValidationError, whole: str = "it", kind: type[Struct] | None = None
) -> str:
    """Return the sentence, without a full stop.

    Parameters
    ----------
    whole
        What to call the value that does not fit, when it is not a part of it.
    kind
        What it was to become, where that is known: it tells what there is to choose.

    >>> from msgspec import convert
    >>> try:
    ...     convert({"a": ["x"]}, dict[str, list[int]])
    ... except ValidationError as error:
    ...     misfit(error, "the list")
    'an item of it is a whole number, not text'
    """
    text = str(error)
    place = _PLACE.search(text)
    subject = _subject(place["path"]) if place else ""
    said = text[: place.start()] if place else text
    expected = _EXPECTED.fullmatch(said)
    if expected:
        wanted, found = _kinds(expected["wanted"]), _kinds(expected["found"])
        return f"{subject or whole} is {wanted}, not {found}"
    invalid = _INVALID.fullmatch(said)
    if invalid:
        name = subject.strip("'")
        if known := _choices(kind, name):
            return f"{name} is {known}, not {invalid['value']}"
        return f"{subject or whole} cannot be {invalid['value']}"
    ended = _RANGE.fullmatch(said)
    if ended:
        end = f"{float(ended['end']):.16g}"
        return f"{subject or whole} is {_ENDS[ended['sign']]} {end}"
    said = said.replace("Object missing required field", "there must be a field")
    said = said.replace(
        "Object contains unknown field", "there is no use for the field"
    )
    said = said.replace("`", "'")
    return f"{subject}: {said[:1].lower()}{said[1:]}" if subject else said


def _choices(kind: type[Struct] | None, name: str) -> str:
    """Return what a field is one of, as in a sentence; empty if that is unknown."""
    found = kinds_of(kind).get(name) if kind else None
    *early, last = found.choices if found and found.choices else ("",)
    return f"{', '.join(early)} or {last}" if early else last


def _subject(path: str) -> str:
    """Return a place in a value: ``.disks[0].size`` is the size in disks.

    >>> _subject(".disks[0]"), _subject("[...]"), _subject(".a.b")
    ("an item of 'disks'", 'an item of it', "'a.b'")
    """
    name, bracket, rest = path.partition("[")
    name = name.lstrip(".")
    if not bracket:
        return f"'{name}'" if name else ""
    owner = f"'{name}'" if name else "it"
    inner = rest.rpartition("].")[2] if "]." in rest else ""
    return f"'{inner}' in {owner}" if inner else f"an item of {owner}"


def _kinds(words: str) -> str:
    kinds = [_WORDS.get(word.strip(), word.strip()) for word in words.split("|")]
    told = [kind for kind in kinds if kind != "nothing"] or kinds
    return " or ".join(told)


def why(error: Exception) -> str:
    """Return in words why something stored cannot be read."""
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)
