# SPDX-License-Identifier: BSD-2-Clause
"""Operations on nodes."""

from .add import NodeAdd
from .evacuate import NodeEvacuate
from .failover import NodeFailover
from .migrate import NodeMigrate
from .power import NodePowercycle, OobCommand, RestrictedCommand
from .remove import NodeRemove
from .renew_crypto import NodeRenewCrypto
from .set_params import NodeSetParams
from .shutdown_orphan import NodeShutdownOrphan
from .storage import (
    NodeModifyStorage,
    NodeQueryStorage,
    NodeQueryvols,
    RepairNodeStorage,
)
from .try_accelerator import NodeTryAccelerator

OPERATIONS = (
    NodeAdd,
    NodeEvacuate,
    NodeFailover,
    NodeMigrate,
    NodeModifyStorage,
    NodePowercycle,
    NodeQueryStorage,
    NodeQueryvols,
    NodeRemove,
    NodeRenewCrypto,
    NodeSetParams,
    NodeShutdownOrphan,
    NodeTryAccelerator,
    OobCommand,
    RepairNodeStorage,
    RestrictedCommand,
)
