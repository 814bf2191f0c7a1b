# SPDX-License-Identifier: BSD-2-Clause
"""Operations on disks as objects of their own."""

from .add import DiskAdd
from .attach import DiskAttach
from .convert import DiskConvert
from .detach import DiskDetach
from .forget import DiskForget
from .grow import DiskGrow
from .remove import DiskRemove
from .rename import DiskRename, DiskSetParams
from .snapshot import DiskSnapshot

OPERATIONS = (
    DiskAdd,
    DiskAttach,
    DiskConvert,
    DiskDetach,
    DiskForget,
    DiskGrow,
    DiskRemove,
    DiskRename,
    DiskSetParams,
    DiskSnapshot,
)
