# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's query language: from what a person types to the filter that is sent.

==========================  ====================================================
``status == "running"``     ``["==", "status", "running"]``; also != < <= > >=
``name =~ m/^web/i``        ``["=~", "name", "(?i)^web"]``; ``!~`` negates
``name =* "web*"``          a glob; ``!*`` negates
``"web" in tags``           ``["=[]", "tags", "web"]``; also ``not in``
``drained``                 ``["?", "drained"]``
``not``, ``and``, ``or``    bind in this order; parentheses
==========================  ====================================================
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from moorage.errors import BadInput
from moorage.units import is_whole

Filter = list[Any]

_TOKENS = re.compile(
    r"""\s*(?:
      (?P<pattern> m(?P<mark>[/\#^|~]) (?P<body>(?:(?!(?P=mark)).)*) (?P=mark)
                   (?P<flags>[is]*) )
    | (?P<text> "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)' )
    | (?P<number> -?[0-9]{1,18}(?:\.[0-9]{1,18})?(?![\w.]) )
    | (?P<op> ==|!=|<=|>=|=~|!~|=\*|!\*|<|>|=|\(|\) )
    | (?P<word> [A-Za-z_][\w./-]* )
    )""",
    re.VERBOSE,
)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "=")
_DEEPEST = 100
_GLOB = frozenset("*?")
_FILTER = frozenset("()=/!~<>'\"\\ \t")


class _Token(NamedTuple):
    kind: str
    value: Any


def parse(text: str) -> Filter:
    """Return the filter that `text` describes.

    Raises
    ------
    BadInput
        If it is not in the language; the sentence says where it ends to be.

    >>> parse('status == "running" and not drained')
    ['&', ['==', 'status', 'running'], ['!', ['?', 'drained']]]
    """
    return _Reader(text).whole()


def _tokens(text: str) -> list[_Token]:
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise _bad(text, f"'{text[position:].strip()}' is not understood")
        found.append(_token(match))
        position = match.end()
    return found


def _token(match: re.Match[str]) -> _Token:
    kind = next(k for k in ("pattern", "text", "number", "op", "word") if match[k])
    if kind == "pattern":
        flags = f"(?{match['flags']})" if match["flags"] else ""
        return _Token(kind, flags + match["body"])
    if kind == "text":
        quoted = match["double"] if match["double"] is not None else match["single"]
        return _Token(kind, re.sub(r"\\(.)", r"\1", quoted))
    if kind == "number":
        number = match["number"]
        return _Token(kind, float(number) if "." in number else int(number))
    return _Token(kind, match[kind])


class _Reader:
    """Reads tokens from the left; each method reads one kind of expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Filter:
        found = self._or()
        if self._next < len(self._tokens):
            rest = self._tokens[self._next].value
            raise _bad(self._text, f"'{rest}' stands where the filter should end")
        return found

    def _or(self) -> Filter:
        return self._joined("or", "|", self._and)

    def _and(self) -> Filter:
        return self._joined("and", "&", self._not)

    def _joined(self, word: str, sign: str, part: Any) -> Filter:  # noqa: ANN401
        parts = [part()]
        while self._takes("word", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else [sign, *parts]

    def _not(self) -> Filter:
        self._depth += 1
        try:
            return self._negated()
        finally:
            self._depth -= 1

    def _negated(self) -> Filter:
        if self._depth > _DEEPEST:
            raise _bad(self._text, f"it is nested more than {_DEEPEST} levels deep")
        if self._takes("word", "not"):
            return ["!", self._not()]
        if self._takes("op", "("):
            found = self._or()
            if not self._takes("op", ")"):
                raise _bad(self._text, "a parenthesis is not closed")
            return found
        return self._condition()

    def _condition(self) -> Filter:
        token = self._pop("a field or a value")
        if token.kind in ("text", "number"):
            return self._contained(token.value)
        if token.kind != "word":
            raise _bad(self._text, f"'{token.value}' stands where a field should")
        return self._compared(str(token.value))

    def _contained(self, value: Any) -> Filter:  # noqa: ANN401
        negated = self._takes("word", "not")
        if not self._takes("word", "in"):
            raise _bad(self._text, f"'{value}' must be followed by: in FIELD")
        field = self._pop("a field")
        if field.kind != "word":
            raise _bad(self._text, f"'{field.value}' is not a field")
        found = ["=[]", field.value, value]
        return ["!", found] if negated else found

    def _compared(self, field: str) -> Filter:
        for sign in _COMPARISONS:
            if self._takes("op", sign):
                return ["==" if sign == "=" else sign, field, self._value(sign)]
        for sign in ("=~", "!~", "=*", "!*"):
            if self._takes("op", sign):
                return self._matched(sign, field)
        return ["?", field]

    def _matched(self, sign: str, field: str) -> Filter:
        token = self._pop(f"a value after {sign}")
        wanted = "pattern" if sign[1] == "~" else "text"
        if token.kind != wanted:
            form = "m/.../" if wanted == "pattern" else '"..."'
            raise _bad(self._text, f"{sign} takes {form}, not '{token.value}'")
        value = token.value if wanted == "pattern" else glob_pattern(token.value)
        found = ["=~", field, _regular(self._text, value)]
        return ["!", found] if sign[0] == "!" else found

    def _value(self, sign: str) -> Any:  # noqa: ANN401
        token = self._pop(f"a value after {sign}")
        if token.kind not in ("text", "number"):
            hint = f'quote it: "{token.value}"' if token.kind == "word" else ""
            raise _bad(self._text, f"'{token.value}' is not a value", hint)
        return token.value

    def _takes(self, kind: str, value: str) -> bool:
        if self._tokens[self._next : self._next + 1] == [_Token(kind, value)]:
            self._next += 1
            return True
        return False

    def _pop(self, wanted: str) -> _Token:
        if self._next >= len(self._tokens):
            raise _bad(self._text, f"it ends where {wanted} should be")
        self._next += 1
        return self._tokens[self._next - 1]


def _regular(text: str, pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise _bad(text, f"the regular expression is wrong: {error}") from error
    return pattern


def _bad(text: str, why: str, hint: str = "") -> BadInput:
    known = hint or 'write it as in: status == "running" and not drained'
    return BadInput(f"the filter {text!r} cannot be read: {why}", hint=known)


def glob_pattern(glob: str) -> str:
    """Return the regular expression of a glob; it also fits before a domain.

    >>> bool(re.search(glob_pattern("web*"), "web1.example.com"))
    True
    """
    signs = {"*": ".*", "?": "."}
    body = "".join(signs.get(char, re.escape(char)) for char in glob)
    return f"^{body}(\\..*)?$"


def of_words(
    words: Sequence[str],
    fields: Sequence[str],
    *,
    forced: bool = False,
    whose: bool = False,
) -> Filter | None:
    """Return the filter that the operands of a list command make; None for all.

    Parameters
    ----------
    words
        Names, globs, or one filter (when `forced`, or when it looks like one).
    fields
        Fields that a name may stand in.
    whose
        Whether a name may follow its owner's, as in ``web1/root``.

    Raises
    ------
    BadInput
        If a filter is forced and there is not exactly one operand.
    """
    if forced and len(words) != 1:
        raise BadInput(
            f"--filter takes one filter, not {len(words)}", hint="quote the filter"
        )
    signs = _FILTER - {"/"} if whose else _FILTER
    if forced or (len(words) == 1 and signs & set(words[0])):
        return parse(words[0])
    parts = [_named(field, word) for word in words for field in fields]
    return ["|", *parts] if parts else None


def _named(field: str, word: str) -> Filter:
    if _GLOB & set(word):
        return ["=~", field, glob_pattern(word)]
    number = field == "id" and is_whole(word)
    return ["==", field, int(word) if number else word]
