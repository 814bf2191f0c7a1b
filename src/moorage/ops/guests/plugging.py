# SPDX-License-Identifier: BSD-2-Clause
"""Whether disks come and go while a guest runs."""

from moorage.errors import WrongState
from moorage.jobs import View
from moorage.model import Instance

from .foreign import check_ours
from .liveness import guest, runs


def check_plugs(view: View, instance: Instance, what: str) -> None:
    """Raise `WrongState` for a guest that runs, and takes and gives up no disks.

    It runs as Ganeti started it, or has its disks on IDE.

    Parameters
    ----------
    what
        That it cannot have, as "a disk that is plugged".
    """
    check_ours(view, instance, what)
    found = guest(view, instance) if runs(view, instance) else None
    if found is not None and found.machine.get("disk_type") == "ide":
        raise WrongState(
            f"instance {instance.name} has its disks on IDE: {what} needs it to be "
            "shut down first",
            hint=f"gnt-instance shutdown {instance.name}",
            instance=instance.name,
        )
