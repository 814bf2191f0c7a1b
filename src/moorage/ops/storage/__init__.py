# SPDX-License-Identifier: BSD-2-Clause
"""Operations that look at storage and operating systems."""

from moorage.jobs import Operation

OPERATIONS: tuple[type[Operation], ...] = ()
