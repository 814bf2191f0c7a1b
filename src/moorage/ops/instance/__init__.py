# SPDX-License-Identifier: BSD-2-Clause
"""Operations on instances."""

from .activate_disks import InstanceActivateDisks, InstanceDeactivateDisks
from .console import InstanceConsole
from .create import InstanceCreate
from .failover import InstanceFailover
from .grow_disk import InstanceGrowDisk
from .migrate import InstanceMigrate
from .modify import InstanceSetParams
from .power import InstanceReboot, InstanceShutdown, InstanceStartup
from .query_data import InstanceQueryData
from .remove import InstanceRemove
from .replace_disks import InstanceReplaceDisks

OPERATIONS = (
    InstanceActivateDisks,
    InstanceConsole,
    InstanceCreate,
    InstanceDeactivateDisks,
    InstanceFailover,
    InstanceGrowDisk,
    InstanceMigrate,
    InstanceQueryData,
    InstanceReboot,
    InstanceRemove,
    InstanceReplaceDisks,
    InstanceSetParams,
    InstanceShutdown,
    InstanceStartup,
)
