# SPDX-License-Identifier: BSD-2-Clause
"""Guests whose processes Ganeti started: what they cannot have."""

from moorage.errors import WrongState
from moorage.model import GuestState, Instance

LACKS = (
    "until its next start it has no user, no sandbox of its own and no screen, takes "
    "and gives up no devices, is not copied, does not migrate, and nobody hears why it "
    "ended"
)
"""What a guest that was taken over cannot have, as the end of a sentence."""


def story(guest: GuestState | None) -> str:
    """Return what is told of a guest that Ganeti started; empty for any other."""
    if guest is None or not guest.origin:
        return ""
    if guest.origin == "adopted":
        return f"by Ganeti, and taken over: {LACKS}"
    return "by Ganeti, and nobody has taken it over: it gets no orders"


def check_ours(guest: GuestState | None, instance: Instance, what: str) -> None:
    """Raise `WrongState` for a guest that Ganeti started.

    Parameters
    ----------
    what
        That it cannot have, as "a migration".
    """
    if guest is None or not guest.origin:
        return
    adopted = guest.origin == "adopted"
    raise WrongState(
        f"the guest of instance {instance.name} runs as Ganeti started it: {what} "
        "needs a start of its own first",
        hint=f"gnt-instance reboot {instance.name}"
        if adopted
        else "moorage adopt-guests",
        instance=instance.name,
    )
