# SPDX-License-Identifier: BSD-2-Clause
"""Operations on networks."""

from moorage.jobs import Operation

from .add import NetworkAdd
from .connect import NetworkConnect, NetworkDisconnect
from .remove import NetworkRemove, NetworkRename
from .set_params import NetworkSetParams

OPERATIONS: tuple[type[Operation], ...] = (
    NetworkAdd,
    NetworkConnect,
    NetworkDisconnect,
    NetworkRemove,
    NetworkRename,
    NetworkSetParams,
)
