# SPDX-License-Identifier: BSD-2-Clause
"""What the info commands print: Ganeti's layout, which any YAML reader takes.

Maps and lists nest by two spaces. A :class:`Flow` is written on one line, in the form
that Ganeti's scripts look for: ``['provider', 'volume']``.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9_/(+](?:[ -~]*[!-~])?")
_MISREAD = re.compile(r": |:$| #")
_BREAKS = re.compile(r"^$|[][{},]")
"""What ends a word within a list on one line."""
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


class Flow(list[Any]):
    """A list that is shown on one line."""

    def __str__(self) -> str:
        return f"[{', '.join(_flow(item) for item in self)}]"


class Words(Flow):
    """A list on one line, of which words are quoted only where they would be misread.

    >>> str(Words([1, "message", "all is well", "a, b"]))
    "[1, message, all is well, 'a, b']"
    """

    def __str__(self) -> str:
        return f"[{', '.join(_word(item) for item in self)}]"


def _word(item: Any) -> str:  # noqa: ANN401
    text = scalar(item)
    return _flow(item) if isinstance(item, str) and _BREAKS.search(text) else text


def defaulted(own: Mapping[str, Any], actual: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters; those that are not an object's own as ``default (x)``.

    >>> defaulted({"vcpus": 2}, {"vcpus": 2, "minmem": 128})
    {'minmem': 'default (128)', 'vcpus': 2}
    """
    return {
        key: _defaulted(key, own, value)
        for key, value in sorted({**own, **actual}.items())
    }


def _defaulted(key: str, own: Mapping[str, Any], value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping) and value:
        return defaulted(own.get(key) or {}, value)
    return own.get(key, f"default ({value})")


def _flow(item: Any) -> str:  # noqa: ANN401
    if isinstance(item, str):
        return "'" + item.replace("'", "''") + "'"
    return "null" if item is None else str(item)


def lines(value: Any, indent: str = "") -> Iterator[str]:  # noqa: ANN401
    """Yield the lines of nested maps and lists.

    >>> list(lines({"Disks": [{"size": "1.0G", "uuid": "a"}]}))
    ['Disks:', '  - size: 1.0G', '    uuid: a']
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entry(f"{indent}{scalar(str(key))}:", item, indent)
    else:
        for item in value:
            yield from _item(item, indent)


def _entry(key: str, item: Any, indent: str) -> Iterator[str]:  # noqa: ANN401
    if nested(item):
        yield key
        yield from lines(item, indent + "  ")
    else:
        text = scalar(item)
        yield f"{key} {text}" if text else key


def _item(item: Any, indent: str) -> Iterator[str]:  # noqa: ANN401
    if not nested(item):
        yield f"{indent}- {scalar(item)}"
        return
    first, *others = lines(item, indent + "  ")
    yield f"{indent}- {first.lstrip()}"
    yield from others


def nested(value: Any) -> bool:  # noqa: ANN401
    """Whether a value needs lines of its own."""
    return (
        bool(value)
        and isinstance(value, Mapping | list)
        and not isinstance(value, Flow)
    )


def scalar(value: Any) -> str:  # noqa: ANN401
    """Return a value on one line, quoted where a YAML reader would misread it.

    >>> scalar("default (True)"), scalar("a: b"), scalar(None), scalar({})
    ('default (True)', "'a: b'", 'None', '')
    """
    if isinstance(value, Mapping | list) and not value and not isinstance(value, Flow):
        return ""
    text = str(value)
    if not isinstance(value, str) or not text:
        return text
    if not text.isprintable():
        return json.dumps(text)  # JSON's strings are YAML's, escapes included
    if _PLAIN.fullmatch(text) and not _misread(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _misread(text: str) -> bool:
    return bool(_MISREAD.search(text)) or text.lower() in _WORDS
