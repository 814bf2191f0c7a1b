# SPDX-License-Identifier: BSD-2-Clause
"""What Ganeti's clients ask before an export: here there is nothing to prepare."""

from moorage.errors import NotSupported
from moorage.jobs import View
from moorage.ops.instance.base import OnInstance


class BackupPrepare(OnInstance, frozen=True, kw_only=True):
    """Prepare an export: a local one needs nothing, another cluster gets none.

    Attributes
    ----------
    mode
        ``local``.
    """

    op_id = "OP_BACKUP_PREPARE"

    mode: str

    def check(self, view: View) -> None:
        """Refuse an export to another cluster, as the export itself would."""
        OnInstance.check(self, view)
        if self.mode != "local":
            raise NotSupported(
                f"there is no export of mode '{self.mode}': it is local",
                hint="gnt-backup export -n NODE INSTANCE",
            )
