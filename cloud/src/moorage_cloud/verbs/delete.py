# SPDX-License-Identifier: BSD-2-Clause
"""A volume and its data go; its quota is back when the cluster said that they are gone.

Where it has no data, at once. Where a server has it, with the disk. Otherwise a cluster
that sees its storage has it for a moment, only to remove it.
"""

from moorage_cloud.errors import BadRequest
from moorage_cloud.life import Delete, Status
from moorage_cloud.models import Volume

from .caller import Caller
from .changing import By, begin, changing
from .hindrances import of_server, refuse
from .reach import lender


def delete(who: Caller, volume: Volume) -> None:
    """Delete a volume; one that is being deleted is left alone.

    Raises
    ------
    BadRequest
        If its state does not allow it, it has snapshots, or a server starts from it.
    Unavailable
        If no cluster can remove its data now.
    """
    with changing(volume) as held:
        if held.status in {Status.DELETING, Status.DELETED}:
            return
        if held.snapshots.filter(deleted=False).exists():
            raise BadRequest(f"Invalid volume: volume {held.uuid} has snapshots")
        place = held.place
        if place:
            if place.index == 0:
                raise BadRequest(
                    f"volume {held.uuid} is what server {place.server.uuid} starts "
                    "from: it goes with its server"
                )
            refuse(of_server(place.server))
            by: By | None = By(place.server.backend, place.server)
            begin(held, Delete(), who, by)
            return
        by = lender(held) if held.initialized else None
        server = by.server if by else None
        begin(held, Delete(server.pk if server else None), who, by)
