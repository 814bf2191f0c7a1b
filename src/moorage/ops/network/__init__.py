# SPDX-License-Identifier: BSD-2-Clause
"""Operations on networks."""

from .add import NetworkAdd
from .connect import NetworkConnect, NetworkDisconnect
from .remove import NetworkRemove, NetworkRename
from .set_params import NetworkSetParams

OPERATIONS = (
    NetworkAdd,
    NetworkConnect,
    NetworkDisconnect,
    NetworkRemove,
    NetworkRename,
    NetworkSetParams,
)
