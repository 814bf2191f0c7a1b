# SPDX-License-Identifier: BSD-2-Clause
"""Guests whose processes Ganeti started: what they cannot have."""

from moorage.errors import WrongState
from moorage.jobs import View
from moorage.model import GuestState, Instance

from .liveness import guest, runs

LACKS = (
    "until its next start it has no user, no sandbox of its own and no screen, takes "
    "and gives up no devices, is not copied, does not migrate, and nobody hears why it "
    "ended"
)
"""What a guest that was taken over cannot have, as the end of a sentence."""


def story(found: GuestState | None) -> str:
    """Return what is told of a guest that Ganeti started; empty for any other."""
    if found is None or not found.origin:
        return ""
    if found.origin == "adopted":
        return f"by Ganeti, and taken over: {LACKS}"
    return "by Ganeti, and nobody has taken it over: it gets no orders"


def check_taken(view: View, instance: Instance) -> None:
    """Raise `WrongState` for one whose guest runs, and that nobody has taken over.

    For what works on its disks, which are not held here yet.
    """
    found = guest(view, instance) if runs(view, instance) else None
    if found is not None and found.origin == "foreign":
        raise WrongState(
            f"the guest of instance {instance.name} runs in a process that Ganeti "
            "started, and that nobody has taken over: its disks are left alone",
            hint="moorage adopt-guests",
            instance=instance.name,
        )


def check_ours(view: View, instance: Instance, what: str) -> None:
    """Raise `WrongState` for an instance whose guest runs as Ganeti started it.

    Parameters
    ----------
    what
        That it cannot have, as "a migration".
    """
    found = guest(view, instance) if runs(view, instance) else None
    if found is None or not found.origin:
        return
    adopted = found.origin == "adopted"
    raise WrongState(
        f"the guest of instance {instance.name} runs as Ganeti started it: {what} "
        "needs a start of its own first",
        hint=f"gnt-instance reboot {instance.name}"
        if adopted
        else "moorage adopt-guests",
        instance=instance.name,
    )
