# SPDX-License-Identifier: BSD-2-Clause
"""Operations on node groups."""

from moorage.jobs import Operation

OPERATIONS: tuple[type[Operation], ...] = ()
