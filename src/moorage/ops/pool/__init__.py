# SPDX-License-Identifier: BSD-2-Clause
"""Operations on storage pools."""

from moorage.jobs import Operation

from .add import StoragePoolAdd
from .connect import StoragePoolConnect, StoragePoolDisconnect
from .remove import StoragePoolRemove
from .set_params import StoragePoolSetParams

__all__ = ["OPERATIONS", "StoragePoolAdd", "StoragePoolRemove"]

OPERATIONS: tuple[type[Operation], ...] = (
    StoragePoolAdd,
    StoragePoolConnect,
    StoragePoolDisconnect,
    StoragePoolRemove,
    StoragePoolSetParams,
)
