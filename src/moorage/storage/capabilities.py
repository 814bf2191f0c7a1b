# SPDX-License-Identifier: BSD-2-Clause
"""What a template declares about itself."""

from dataclasses import dataclass
from enum import Flag, auto

from moorage.disk_templates import Mirror, Reach, TemplateFacts


class Can(Flag):
    """What a template can do beyond attach and detach."""

    NOTHING = 0
    CREATE = auto()
    """Make and destroy volumes of its own."""
    GROW = auto()
    SNAPSHOT = auto()
    ADOPT = auto()
    """Take over a volume that exists."""
    USERSPACE = auto()
    """Let the hypervisor reach a volume through a URI, without a block device."""
    OPEN = auto()
    """Tell the storage who may write (open, close)."""
    SETINFO = auto()
    """Keep a note beside the volume."""
    ROOM = auto()
    """Tell how much room its storage units have on a node."""
    VERIFY = auto()
    """Look at a disk's parameters before anything is made with them."""
    CLONE = auto()
    """Make snapshots of one moment, also while a guest writes, that need nothing of the
    disk itself."""
    LIST = auto()
    """Tell which volumes its storage has, whoever made them."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a template declares about itself; the core asks, and never its name.

    Attributes
    ----------
    facts
        What is true of the template, whether we drive it or not.
    """

    facts: TemplateFacts
    can: Can
    programs: tuple[str, ...] = ()
    """What must be installed on a node."""
    modules: tuple[str, ...] = ()
    """What the kernel of a node must have."""
    provider: bool = False
    """Whether scripts of a provider, named by a parameter, do the work."""
    images: bool = False
    """Whether volumes are image files below a directory of the cluster's."""

    @property
    def mirror(self) -> Mirror:
        """Who keeps a second copy of the data."""
        return self.facts.mirror

    @property
    def reach(self) -> Reach:
        """Where a volume can be used."""
        return self.facts.reach
