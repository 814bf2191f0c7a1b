# SPDX-License-Identifier: BSD-2-Clause
"""Operations on disks as objects of their own."""

from .add import DiskAdd
from .adopt import DiskAdopt
from .attach import DiskAttach
from .clone import DiskClone
from .convert import DiskConvert
from .detach import DiskDetach
from .forget import DiskForget
from .grow import DiskGrow
from .remove import DiskRemove
from .rename import DiskRename, DiskSetParams
from .snapshot import DiskSnapshot

OPERATIONS = (
    DiskAdd,
    DiskAdopt,
    DiskAttach,
    DiskClone,
    DiskConvert,
    DiskDetach,
    DiskForget,
    DiskGrow,
    DiskRemove,
    DiskRename,
    DiskSetParams,
    DiskSnapshot,
)
