# SPDX-License-Identifier: BSD-2-Clause
"""Whether a volume's data is there: for one that was cut off while it was being made.

A cluster that sees its storage takes it as it is, and leaves it again. No cluster can
say for certain that there is none: what it fails with, an administrator judges.
"""

from moorage_cloud.errors import BadRequest
from moorage_cloud.life import Check, NoData
from moorage_cloud.models import Volume

from .caller import Caller
from .changing import begin, changing
from .reach import lender


def check_data(who: Caller, volume: Volume) -> None:
    """Have a cluster find the data; then the volume is available again.

    Where it is not found, the volume stays in its state, and its fault says why.

    Raises
    ------
    BadRequest
        If its state does not ask for that.
    Unavailable
        If no cluster can look.
    """
    with changing(volume) as held:
        if held.uncopied:
            raise BadRequest(
                f"the data of volume {held.uuid} was to be a copy that did not come to "
                "its end: delete it"
            )
        if not held.initialized:
            raise BadRequest(f"volume {held.uuid} has no data to look for")
        by = lender(held)
        begin(held, Check(by.server.pk if by.server else None), who, by)


def without_data(who: Caller, volume: Volume) -> None:
    """Believe an administrator that there is none: the next attach makes it.

    Raises
    ------
    BadRequest
        If its state does not ask for that.
    """
    with changing(volume) as held:
        begin(held, NoData(), who)
