# SPDX-License-Identifier: BSD-2-Clause
"""A volume gets another type, where its data can stay where it is."""

from moorage_cloud.errors import BadRequest
from moorage_cloud.life import Status
from moorage_cloud.models import Volume, VolumeType

from .attach import check_detachable
from .caller import Caller
from .changing import changing
from .quota import charge, used_by
from .story import What, tell


def retype(who: Caller, volume: Volume, kind: VolumeType) -> Volume:
    """Give a volume another type.

    Raises
    ------
    BadRequest
        If its data would have to move, or its state does not allow it.
    OverLimit
        If the project's quota of the new type does not.
    """
    with changing(volume) as held:
        old = held.volume_type
        if held.status not in {Status.AVAILABLE, Status.IN_USE}:
            raise BadRequest(
                f"Invalid volume: status must be available or in-use ({held.uuid})"
            )
        if old == kind:
            return held
        if held.place is None:
            check_detachable(kind)
        if held.initialized and old.place != kind.place:
            raise BadRequest(
                f"the data of volume {held.uuid} would have to move from type "
                f"'{old.name}' to '{kind.name}': that is not possible"
            )
        # What the two types share of the limits is counted once.
        used = used_by(held)
        less = {name: -amount for name, amount in used.items()}
        charge(held.project, old.name, **less)
        charge(held.project, kind.name, **used)
        held.volume_type = kind
        held.save()
        tell(held, What.RETYPE, who, why=f"from type '{old.name}' to '{kind.name}'")
    return held
