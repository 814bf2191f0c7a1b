# SPDX-License-Identifier: BSD-2-Clause
"""Operations on instances."""

from .activate_disks import InstanceActivateDisks, InstanceDeactivateDisks
from .adopt_guest import InstanceAdoptGuest
from .change_group import InstanceChangeGroup
from .clone import InstanceClone
from .console import InstanceConsole
from .create import InstanceCreate
from .failover import InstanceFailover
from .foreign_guests import ClusterForeignGuests
from .grow_disk import InstanceGrowDisk
from .migrate import InstanceMigrate
from .modify import InstanceSetParams
from .move import InstanceMove
from .multi_alloc import InstanceMultiAlloc
from .power import InstanceReboot, InstanceShutdown, InstanceStartup
from .query_data import InstanceQueryData
from .recreate_disks import InstanceRecreateDisks
from .reinstall import InstanceReinstall
from .remove import InstanceRemove
from .rename import InstanceRename
from .replace_disks import InstanceReplaceDisks
from .restart_guest import InstanceRestartGuest

MODES = {("OP_INSTANCE_CREATE", "clone"): InstanceClone}
"""What an opcode stands for in a mode of its own."""

OPERATIONS = (
    ClusterForeignGuests,
    InstanceActivateDisks,
    InstanceAdoptGuest,
    InstanceChangeGroup,
    InstanceConsole,
    InstanceCreate,
    InstanceDeactivateDisks,
    InstanceFailover,
    InstanceGrowDisk,
    InstanceMigrate,
    InstanceMove,
    InstanceMultiAlloc,
    InstanceQueryData,
    InstanceReboot,
    InstanceRecreateDisks,
    InstanceReinstall,
    InstanceRemove,
    InstanceRename,
    InstanceReplaceDisks,
    InstanceRestartGuest,
    InstanceSetParams,
    InstanceShutdown,
    InstanceStartup,
)
