# SPDX-License-Identifier: BSD-2-Clause
"""Operations on the cluster as a whole."""

from .delay import Delay
from .orders import ClusterCommand, ClusterCopyFile
from .rename import ClusterRedistConf, ClusterRename
from .renew_crypto import ClusterRenewCrypto
from .repair_disk_sizes import ClusterRepairDiskSizes
from .set_params import ClusterSetParams
from .try_allocator import TryAllocator
from .verify import ClusterVerify
from .verify_disks import ClusterVerifyDisks

OPERATIONS = (
    ClusterCommand,
    ClusterCopyFile,
    ClusterRedistConf,
    ClusterRename,
    ClusterRenewCrypto,
    ClusterRepairDiskSizes,
    ClusterSetParams,
    ClusterVerify,
    ClusterVerifyDisks,
    Delay,
    TryAllocator,
)
