# SPDX-License-Identifier: BSD-2-Clause
"""Words of others: what scripts print and agents answer, made harmless.

A terminal obeys control characters: they set its title and fill its clipboard. So they
are spelled out where words come in, and everybody further on may print them.
"""

import re
from typing import Any

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def clean(text: str) -> str:
    r"""Return a text with its control characters spelled out, but for ``\n`` and tabs.

    >>> print(clean("a \x1b[2J"))
    a \x1b[2J
    """
    return _CONTROL.sub(_spelled, text)


def clean_all(value: Any) -> Any:  # noqa: ANN401
    """Return JSON values with every text in them cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_all(one) for one in value]
    if isinstance(value, dict):
        return {clean(key): clean_all(one) for key, one in value.items()}
    return value


def _spelled(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
