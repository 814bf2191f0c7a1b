# SPDX-License-Identifier: BSD-2-Clause
"""What fields and parameters can be set to, as JSON has it."""

from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = (
    Scalar | list[Scalar] | dict[str, Scalar] | dict[str, dict[str, Scalar]]
)
