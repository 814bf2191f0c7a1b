# SPDX-License-Identifier: BSD-2-Clause
"""Operations on the cluster as a whole."""

from moorage.jobs import Operation

OPERATIONS: tuple[type[Operation], ...] = ()
