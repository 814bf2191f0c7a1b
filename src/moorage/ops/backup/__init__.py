# SPDX-License-Identifier: BSD-2-Clause
"""Operations on exports, and those that make them and bring them back."""

from .disk import DiskExport, DiskImport
from .export import BackupExport
from .prepare import BackupPrepare
from .remove import BackupRemove, BackupVerify
from .restore import InstanceImport

MODES = {("OP_INSTANCE_CREATE", "import"): InstanceImport}
"""What an opcode stands for in a mode of its own."""

OPERATIONS = (
    BackupExport,
    BackupPrepare,
    BackupRemove,
    BackupVerify,
    DiskExport,
    DiskImport,
)
