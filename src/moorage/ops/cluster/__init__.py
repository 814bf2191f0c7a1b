# SPDX-License-Identifier: BSD-2-Clause
"""Operations on the cluster as a whole."""

from moorage.jobs import Operation

from .delay import Delay
from .renew_crypto import ClusterRenewCrypto
from .repair_disk_sizes import ClusterRepairDiskSizes
from .set_params import ClusterSetParams
from .verify import ClusterVerify

OPERATIONS: tuple[type[Operation], ...] = (
    ClusterRenewCrypto,
    ClusterRepairDiskSizes,
    ClusterSetParams,
    ClusterVerify,
    Delay,
)
