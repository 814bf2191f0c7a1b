# SPDX-License-Identifier: BSD-2-Clause
"""A picture as a document that stands alone: it has its style, and fetches nothing."""

from dataclasses import dataclass
from typing import Final

from .ink import Picture, drawn

STYLE: Final = str(drawn("pictures.css"))
"""The style of pictures, for a page that shows some: all of it is below ``.pic``."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a picture was made from.

    Attributes
    ----------
    command : str
        The command line, but for the name of the picture.
    cluster : str
        The file or address that it was read from.
    group : str
        The node group; empty for all.
    suffix : str
        The end that all names share and that is not printed.
    """

    command: str
    cluster: str
    group: str = ""
    suffix: str = ""

    @property
    def name(self) -> str:
        """The cluster, and the group if there is one."""
        return f"{self.cluster}, group {self.group}" if self.group else self.cluster


def document(picture: Picture, origin: Origin) -> str:
    """Return a picture as an HTML document.

    It is plain ASCII, so that it reads the same in whatever encoding a machine writes
    its files.
    """
    text = drawn("document.html", picture=picture, origin=origin)
    return text.encode("ascii", "xmlcharrefreplace").decode()
