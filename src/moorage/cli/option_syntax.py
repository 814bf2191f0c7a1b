# SPDX-License-Identifier: BSD-2-Clause
r"""Ganeti's little language of option values: ``IDENT:key=value,key=value``.

The first ``:`` splits; ``\,`` is a comma that does not separate; a bare key is true,
``no_key`` is false, ``-key`` is none (back to the default).
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from moorage import backend
from moorage.errors import BadInput
from moorage.units import is_whole

_YEAR = 366 * 86400
_TRUTHS = {"yes": True, "no": False, "true": True, "false": False}


def split(text: str, separator: str = ",") -> list[str]:
    r"""Return the parts of a text; a backslash keeps a separator in its part.

    >>> split(r"a,b\,c")
    ['a', 'b,c']
    """
    parts, part, escaped = [], "", False
    for char in text:
        if escaped:
            part += char if char in (separator, "\\") else "\\" + char
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == separator:
            parts.append(part)
            part = ""
        else:
            part += char
    return [*parts, part + "\\" * escaped]


def key_values(text: str) -> dict[str, Any]:
    """Return the keys of ``key=value,flag,no_flag,-key``.

    Raises
    ------
    BadInput
        If a key stands there twice or is empty.

    >>> key_values("size=1G,boot,no_trim,-cache")
    {'size': '1G', 'boot': True, 'trim': False, 'cache': None}
    """
    found: dict[str, Any] = {}
    for part in split(text) if text else []:
        key, value = _key_value(part)
        if not key:
            raise BadInput(f"there is a value without a key in '{text}'")
        if key in found:
            raise BadInput(f"the key '{key}' stands twice in '{text}'")
        found[key] = value
    return found


def _key_value(part: str) -> tuple[str, Any]:
    key, equals, value = part.partition("=")
    if equals:
        return key, value
    if key.startswith("no_"):
        return key.removeprefix("no_"), False
    if key.startswith("-"):
        return key.removeprefix("-"), None
    return key, True


def ident_key_values(text: str) -> tuple[str, dict[str, Any]]:
    """Return the identifier and the keys of ``IDENT:key=value,...``.

    >>> ident_key_values("0:size=1G"), ident_key_values("detach")
    (('0', {'size': '1G'}), ('detach', {}))
    """
    ident, _, rest = text.partition(":")
    if not ident:
        raise BadInput(f"'{text}' does not begin with a name or number")
    return ident, key_values(rest)


def change_key_values(text: str, alone: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return identifier and keys; some words need no colon before their keys.

    >>> change_key_values("attach,name=a", ["attach"])
    ('attach', {'name': 'a'})
    """
    word, comma, rest = text.partition(",")
    if comma and word in alone:
        return word, key_values(rest)
    return ident_key_values(text)


LAST = -1
"""Stands for the last card or disk."""
Action = tuple[str, int | str, dict[str, Any]]


def action(
    flag: str,
    given: tuple[str, dict[str, Any]],
    actions: Sequence[str],
    alone: Sequence[str],
) -> Action:
    """Return what ``IDENT:ACTION,key=value`` asks for: the action, of what, its keys.

    Parameters
    ----------
    alone
        Actions that may stand in the place of the identifier: they mean the last.

    Raises
    ------
    BadInput
        If it asks for two actions.
    """
    ident, keys = given
    if ident in alone:
        return ident, LAST, keys
    asked = [word for word in actions if word in keys]
    if len(asked) > 1:
        raise BadInput(
            f"{flag} {ident} asks for {' and '.join(asked)}: one at a time",
            hint=f"give {flag} once for each",
        )
    wanted = asked[0] if asked else "modify"
    rest = {key: value for key, value in keys.items() if key != wanted}
    return wanted, int(ident) if is_whole(ident) else ident, rest


def numbered(
    flag: str, what: str, given: Iterable[tuple[str, dict[str, Any]]]
) -> dict[int, dict[str, Any]]:
    """Return keys by the number that stands before them: ``0:size=1G``.

    Raises
    ------
    BadInput
        If a number is none, or stands twice.
    """
    found: dict[int, dict[str, Any]] = {}
    for ident, keys in given:
        if not (ident.isdecimal() and is_whole(ident)):
            raise BadInput(f"'{ident}' is not a {what}'s number, in {flag} {ident}:...")
        if int(ident) in found:
            raise BadInput(f"{flag} {ident} is given twice")
        found[int(ident)] = keys
    return found


def merged(values: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the keys of several options together; the last of a name wins."""
    return {key: value for given in values for key, value in given.items()}


def text_params(values: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the parameters of several options together, as scripts see them."""
    return text_values(merged(values))


def text_values(values: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as scripts see them: texts, without those set to none."""
    return {key: str(value) for key, value in values.items() if value is not None}


def text_keys(text: str) -> dict[str, str]:
    """Return the keys of ``key=value,...`` as scripts see them."""
    return text_values(key_values(text))


def backend_parameters(text: str) -> dict[str, Any]:
    """Return the parameters of ``-B memory=512M,vcpus=2``; ``memory`` sets both ends.

    Raises
    ------
    BadInput
        If a parameter is not known, or its value does not fit.
    """
    return backend.read(key_values(text))


def uid_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of ``1000-1019,2000``.

    Raises
    ------
    BadInput
        If one is no range of user-ids.
    """
    from moorage.model import uidpool  # noqa: PLC0415 - slow to load, seldom needed

    return uidpool.parsed(text)


def shown_uids(ranges: Iterable[Iterable[int]]) -> str:
    """Return ranges as they are typed."""
    from moorage.model import uidpool  # noqa: PLC0415 - slow to load, seldom needed

    return uidpool.shown(tuple((first, last) for first, last in ranges))


def reset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters, those set to none with the word default for their value."""
    return {key: "default" if one is None else one for key, one in values.items()}


def nested(given: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return parameters by what they are of; none stands for the word default."""
    found: dict[str, dict[str, Any]] = {}
    for ident, keys in given:
        found.setdefault(ident, {}).update(reset(keys))
    return found


def check_changed(flag: str, given: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `BadInput` for ``-H kvm``, which changes nothing of kvm."""
    for ident, keys in given.items():
        if not keys:
            raise BadInput(
                f"{flag} {ident} names no parameter", hint=f"{flag} {ident}:KEY=VALUE"
            )


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"([0-9]{1,9})([smhdw]?)")


def span(text: str) -> int:
    """Return the seconds of a time span.

    >>> span("90"), span("2h")
    (90, 7200)
    """
    found = _SPAN.fullmatch(text)
    if not found:
        raise BadInput(f"'{text[:40]}' is no time: 90 (seconds), 15m, 2h, 1d, 1w")
    return int(found[1]) * _UNITS[found[2]]


def truth(text: str) -> bool:
    """Return what yes, no, true and false stand for.

    Raises
    ------
    BadInput
        For any other word.
    """
    if text.lower() not in _TRUTHS:
        raise BadInput(f"'{text}' is neither yes nor no")
    return _TRUTHS[text.lower()]


def number(what: str, least: int = 0, most: int = sys.maxsize) -> Callable[[str], int]:
    """Return what reads a whole number.

    Parameters
    ----------
    what
        What is said not to be one in a refusal: ``a number of seconds``.
    """

    def convert(text: str) -> int:
        if not is_whole(text) or not least <= int(text) <= most:
            raise BadInput(f"'{text[:40]}' is not {what}")
        return int(text)

    return convert


seconds = number("a number of seconds", most=_YEAR)
epoch = number("an epoch", most=1 << 62)
spindles = number("a number of spindles", most=99_999)


def names(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name for name in text.split(",") if name]
