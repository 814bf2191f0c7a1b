# SPDX-License-Identifier: BSD-2-Clause
"""What several commands on disks take."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Operand, Option
from moorage.cli.option_syntax import key_values
from moorage.units import parse_size

DISK = Operand("DISK")

PARAM = Option(
    ("-D", "--param"),
    "parameters of the template or provider; may be repeated",
    "KEY=VALUE,...",
    key_values,
    repeats=True,
)

RATE = Option(("--rate",), "copy so much a second at most: 50M, 1G", "SIZE", parse_size)

MODE = Option(("--mode",), "rw or ro", "MODE", choices=("rw", "ro"))


def merged(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of all options together; the last of a name wins."""
    return {key: value for given in values for key, value in given.items()}
