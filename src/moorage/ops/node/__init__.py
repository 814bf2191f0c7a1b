# SPDX-License-Identifier: BSD-2-Clause
"""Operations on nodes."""

from moorage.jobs import Operation

OPERATIONS: tuple[type[Operation], ...] = ()
