# SPDX-License-Identifier: BSD-2-Clause
"""How the place is where the state is kept, and what somebody should do about it."""

from msgspec import Struct


class StoreTrouble(Struct, frozen=True, kw_only=True):
    """One thing that needs somebody.

    Attributes
    ----------
    said
        What it is: ``member https://node2:2379 gives no answer``.
    command
        To type.
    urgent
        Whether nothing can be written any more.
    """

    said: str
    command: str
    urgent: bool = False


class StoreMember(Struct, frozen=True, kw_only=True):
    """One of those that keep the state together.

    Attributes
    ----------
    name
        Its address.
    up
        Whether it answers.
    size, quota
        Bytes of its database, and how many these may become; None where unknown.
    """

    name: str
    up: bool
    size: int | None = None
    quota: int | None = None


class StoreHealth(Struct, frozen=True, kw_only=True):
    """How the place is where the state is kept.

    Attributes
    ----------
    engine
        ``sqlite`` or ``etcd``.
    """

    engine: str = "sqlite"
    members: tuple[StoreMember, ...] = ()
    troubles: tuple[StoreTrouble, ...] = ()
