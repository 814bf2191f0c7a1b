# SPDX-License-Identifier: BSD-2-Clause
"""What is called otherwise in a file of Ganeti's than it can be here."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.errors import BadInput
from moorage.storage.validation import check_name, check_tags

_GANETIS_TAG = re.compile(r"[\w.+*/:@-]{1,128}")
"""Its letters are those of all scripts."""
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


def fit_tags(tags: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the tags that an object can have here, and why others are left aside.

    Raises
    ------
    BadInput
        If Ganeti could not have them either.
    """
    odd = [one for one in tags if not one.isascii() and _GANETIS_TAG.fullmatch(one)]
    kept = check_tags([one for one in tags if one not in odd])
    told = ", ".join(odd)
    return kept, f"tags with other than ASCII letters go: {told}" if odd else ""


def fit_name(name: str | None) -> tuple[str | None, str]:
    """Return the name that a network card can have here, and why it has another."""
    try:
        return check_name("network card", name) if name else None, ""
    except BadInput as error:
        return None, f"a network card comes in without a name: {error.message}"
