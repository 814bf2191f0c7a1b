# SPDX-License-Identifier: BSD-2-Clause
"""A volume becomes larger, on its server or without one."""

from moorage_cloud.life import Extend
from moorage_cloud.models import Volume

from .caller import Caller
from .changing import By, begin, changing
from .checks import check_size
from .hindrances import of_server, refuse
from .reach import lender


def extend(who: Caller, volume: Volume, size: int) -> None:
    """Make a volume `size` GiB large.

    Raises
    ------
    BadRequest
        If it is not smaller, or its state does not allow it.
    OverLimit
        If the project's quota does not.
    """
    check_size(size)
    with changing(volume) as held:
        place = held.place
        if place:
            refuse(of_server(place.server))
            by: By | None = By(place.server.backend, place.server)
        else:
            by = lender(held) if held.initialized else None
        server = by.server if by else None
        begin(held, Extend(size, server.pk if server else None), who, by)
