# SPDX-License-Identifier: BSD-2-Clause
"""Who has come in, with which role."""

from dataclasses import dataclass

from moorage.model.caller import Role

__all__ = ["Role", "User"]


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who has shown a password or a token.

    Attributes
    ----------
    until
        When that ends, in seconds; None for never.
    """

    name: str
    role: Role
    until: float | None = None
