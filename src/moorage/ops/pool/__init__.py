# SPDX-License-Identifier: BSD-2-Clause
"""Operations on storage pools."""

from .add import StoragePoolAdd
from .connect import StoragePoolConnect, StoragePoolDisconnect
from .remove import StoragePoolRemove
from .set_params import StoragePoolSetParams

__all__ = ["OPERATIONS", "StoragePoolAdd", "StoragePoolRemove"]

OPERATIONS = (
    StoragePoolAdd,
    StoragePoolConnect,
    StoragePoolDisconnect,
    StoragePoolRemove,
    StoragePoolSetParams,
)
