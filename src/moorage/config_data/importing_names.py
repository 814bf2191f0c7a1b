# SPDX-License-Identifier: BSD-2-Clause
"""What disks of a file of Ganeti's are called here, where several have one name."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

_NOBODY = "nobody"
_STORAGE = "storage"


class Names:
    """The names of disks that a file has, as disks come in, one after the other.

    Ganeti lets any two disks share one. Here a name is one disk of an instance, or of
    those that belong to none; and where storage may know volumes by it, one volume.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._taken: set[tuple[str, str]] = set()
        self._owners = {
            uuid: owner
            for owner, instance in document["instances"].items()
            for uuid in instance["disks"]
        }
        self._provided = Counter(
            one.get("name")
            for one in document["disks"].values()
            if one.get("dev_type") == "ext"
        )

    def called(self, part: Mapping[str, Any], *, by_uuid: bool) -> dict[str, Any]:
        """Return the name of a disk if it changes: to none where another had it before.

        A provider is told it of both all the same: their volumes may go by it.

        Parameters
        ----------
        by_uuid
            Whether its provider said that it knows volumes by uuid.
        """
        name = part.get("name")
        if not name:
            return {}
        places = {(self._owners.get(part.get("uuid", ""), _NOBODY), name)}
        provided = part.get("dev_type") == "ext"
        if provided and not by_uuid:
            places.add((_STORAGE, name))
        known = {"cname": name} if provided and self._provided[name] > 1 else {}
        if places & self._taken:
            return {"name": None, "cname": name}
        self._taken |= places
        return {} if by_uuid else known
