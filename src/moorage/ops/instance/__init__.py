# SPDX-License-Identifier: BSD-2-Clause
"""Operations on instances."""

from moorage.jobs import Operation

OPERATIONS: tuple[type[Operation], ...] = ()
