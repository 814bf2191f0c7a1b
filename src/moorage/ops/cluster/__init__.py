# SPDX-License-Identifier: BSD-2-Clause
"""Operations on the cluster as a whole."""

from moorage.jobs import Operation

from .delay import Delay
from .set_params import ClusterSetParams
from .verify import ClusterVerify

OPERATIONS: tuple[type[Operation], ...] = (
    ClusterSetParams,
    ClusterVerify,
    Delay,
)
