# SPDX-License-Identifier: BSD-2-Clause
"""Operations on the cluster as a whole."""

from .delay import Delay
from .master_address import ClusterActivateMasterIp, ClusterDeactivateMasterIp
from .orders import ClusterCommand, ClusterCopyFile
from .rename import ClusterRedistConf, ClusterRename
from .renew_crypto import ClusterRenewCrypto
from .repair_disk_sizes import ClusterRepairDiskSizes
from .set_params import ClusterSetParams
from .try_allocator import TryAllocator
from .verify import ClusterVerify
from .verify_disks import ClusterVerifyDisks

OPERATIONS = (
    ClusterActivateMasterIp,
    ClusterCommand,
    ClusterCopyFile,
    ClusterDeactivateMasterIp,
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
