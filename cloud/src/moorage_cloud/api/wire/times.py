# SPDX-License-Identifier: BSD-2-Clause
"""Moments, as services tell them."""

from datetime import UTC, datetime


def moment(when: datetime) -> str:
    """Return a moment as Cinder writes it.

    >>> moment(datetime(2026, 11, 27, 2, 30, tzinfo=UTC))
    '2026-11-27T02:30:00.000000'
    """
    return when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def zulu(when: datetime) -> str:
    """Return a moment as Keystone writes it.

    >>> zulu(datetime(2026, 11, 27, 2, 30, tzinfo=UTC))
    '2026-11-27T02:30:00.000000Z'
    """
    return moment(when) + "Z"
