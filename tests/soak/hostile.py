# SPDX-License-Identifier: BSD-2-Clause
"""Hostile words, requests and answers, without end, from a seed."""

import json
import random
from typing import Any

WORDS = (
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "/dev/null",
    "-rf",
    "--force",
    "a\0b",
    "a\nb",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "$(reboot)",
    "`id`",
    "'; DROP TABLE records; --",
    "a,file=/etc/shadow",
    "exec:id",
    "tcp:0.0.0.0:1",
    "\ud800",
    "ä" * 300,
    "x" * 70_000,
    "web1",
    "node1",
    "0",
    "-1",
    "1e999",
    "99999999999999999999",
    "NaN",
    "%s%n",
    "{}",
    "[[[[",
)
"""What somebody with bad intentions would write where a name is expected."""
NUMBERS = (0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**30, -(2**63), 0.5, 1e308, -1e308)


class Hostile:
    """A source of what nobody should send."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311

    def word(self) -> str:
        return self.dice.choice(WORDS)

    def value(self, depth: int = 0) -> Any:
        """Return any JSON value."""
        roll = self.dice.random()
        if roll < 0.45 or depth > 3:
            return self.word()
        if roll < 0.65:
            return self.dice.choice(NUMBERS)
        if roll < 0.75:
            return self.dice.choice((None, True, False))
        size = self.dice.randrange(4)
        if roll < 0.88:
            return [self.value(depth + 1) for _ in range(size)]
        return {self.word(): self.value(depth + 1) for _ in range(size)}

    def spoilt(self, value: Any) -> Any:
        """Return a value with one place in it replaced."""
        if self.dice.random() < 0.25:
            return self.value()
        if isinstance(value, dict) and value:
            key = self.dice.choice(list(value))
            other = {**value, key: self.spoilt(value[key])}
            if self.dice.random() < 0.1:
                other[self.word()] = self.value()
            return other
        if isinstance(value, list) and value:
            at = self.dice.randrange(len(value))
            return [*value[:at], self.spoilt(value[at]), *value[at + 1 :]]
        return self.value()

    def text(self, value: Any) -> bytes:
        """Return a value as bytes that are JSON, mostly."""
        data = json.dumps(value).encode()
        roll = self.dice.random()
        if roll < 0.8:
            return data
        if roll < 0.85:
            return data[: self.dice.randrange(len(data) + 1)]
        if roll < 0.9:
            at = self.dice.randrange(len(data) + 1)
            return data[:at] + self.dice.randbytes(3) + data[at:]
        if roll < 0.95:
            return b"[" * self.dice.choice((10, 3_000, 100_000))
        return self.dice.randbytes(self.dice.randrange(200))
