# SPDX-License-Identifier: BSD-2-Clause
"""What must be so of volumes and snapshots: from what was wished, and what storage has.

Nothing here asks the service for anything: it is told what was accepted, and compares
what the service has on record with what that may have come to.
"""

from dataclasses import dataclass, field

from msgspec import Struct

MIB = 1024
"""Of a GiB; the storage of tests has a byte for each MiB."""
ENDED = {"available", "in-use", "deleted", "error", "error_deleting"}
"""Where a volume rests when nothing is under way."""
OFFERED = "awaiting-transfer"


class Wish(Struct, frozen=True):
    """What somebody wanted of a volume, and is not over.

    Attributes
    ----------
    server
        Where it is to be attached.
    size
        GiB that it is to have.
    """

    verb: str
    server: int | None = None
    size: int = 0


class Rest(Struct, frozen=True):
    """Where a volume is while nothing is under way."""

    status: str
    server: int | None = None


@dataclass
class Known:
    """A volume or a snapshot.

    Attributes
    ----------
    name
        What every cluster is to call it.
    size
        GiB that it is counted with, but for an extension under way.
    rest
        Where it was before what is under way, or is.
    doomed
        Whether somebody wanted its data gone, and may still get it.
    unsure
        Whether a cluster was cut off that may have made, changed or removed its data.
    roomy
        Whether its data may be smaller than it is counted: a growth was cut off.
    """

    name: str
    project: str
    size: int
    rest: Rest
    wish: Wish | None = None
    doomed: bool = False
    unsure: bool = False
    roomy: bool = False
    goes_with_server: bool = False
    starts_server: bool = False

    @property
    def gone(self) -> bool:
        """Whether it is no more."""
        return self.rest.status == "deleted"

    def ends(self) -> set[Rest]:
        """Return where what is under way may lead."""
        assert self.wish is not None
        before, free = self.rest, Rest("available")
        return {
            "attach": {Rest("in-use", self.wish.server), free},
            "detach": {free, before},
            "extend": {before},
            "delete": {
                Rest("deleted"),
                Rest("error_deleting", before.server),
                Rest("error_deleting"),  # its cluster got half-way
            },
            "check": {free, before},
            "copy": {free, Rest("error")},
            "perish": {Rest("deleted")},
        }[self.wish.verb]


@dataclass
class Model:
    """All of them.

    Attributes
    ----------
    data
        What guests wrote last, and what copies are of, by name.
    leaving
        Servers that somebody wants removed, with what they start from.
    """

    volumes: dict[int, Known] = field(default_factory=dict)
    copies: dict[int, Known] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)

    def named(self, name: str) -> Known:
        """Return what a cluster calls so; there must be one."""
        every = [*self.volumes.values(), *self.copies.values()]
        (found,) = [one for one in every if one.name == name]
        return found

    def destroyed(self, name: str) -> None:
        """Take note that a cluster removed data: somebody must have wanted that."""
        known = self.named(name)
        with_server = known.starts_server and known.rest.server in self.leaving
        assert known.doomed or with_server, f"nobody wanted the data of {name} gone"
        self.data.pop(name, None)

    def copied(self, name: str, copy: str) -> None:
        """Take note that a copy has what the volume has now."""
        if name in self.data:
            self.data[copy] = self.data[name]

    def begins(self, known: Known, wish: Wish) -> None:
        """Take note of a wish that was granted."""
        assert known.wish is None, f"two verbs of {known.name}"
        known.wish = wish
        known.doomed |= wish.verb in {"delete", "perish"}

    def cut_off(self, known: Known, *, stored: bool) -> None:
        """Take note that it was taken from a cluster that is off, or given up there.

        Parameters
        ----------
        stored
            Whether it was known to have data.
        """
        verb = known.wish.verb if known.wish else ""
        lost = verb in {"delete", "check"} or (verb == "attach" and not stored)
        if known.wish and verb == "extend":
            known.size, known.roomy = known.wish.size, True
        known.unsure |= lost or verb == "extend"
        known.wish, known.rest = None, Rest("error" if lost else "available")
        known.starts_server = False

    def ended(self, known: Known, now: Rest, stored: int | None) -> None:
        """Compare where it is with where it may be, now that nothing is under way.

        Parameters
        ----------
        stored
            MiB that the storage has of it; None for none.
        """
        wish = known.wish
        assert wish is not None
        assert now in known.ends(), (known, now)
        if wish.verb == "extend":
            grown = stored is None or stored >= wish.size * MIB
            known.size = wish.size if grown else known.size
            known.roomy &= not grown
        if wish.verb == "delete" and now.status != "deleted":
            # One that was cut off can come back and go on, until somebody else has it.
            known.unsure |= stored is None
            known.doomed = known.unsure
        if wish.verb == "attach" and now.status == "in-use":
            known.doomed = known.unsure = False
        known.wish, known.rest = None, now

    def usage(self, project: str) -> dict[str, int]:
        """Return what a project is to be counted with."""
        volumes = self._of(self.volumes, project)
        copies = self._of(self.copies, project)
        sizes = [_counted(one) for one in (*volumes, *copies)]
        numbers = {"volumes": len(volumes), "snapshots": len(copies)}
        return numbers | {"gigabytes": sum(sizes)}

    @staticmethod
    def _of(known: dict[int, Known], project: str) -> list[Known]:
        return [
            one for one in known.values() if one.project == project and not one.gone
        ]


def _counted(known: Known) -> int:
    extends = known.wish is not None and known.wish.verb == "extend"
    return known.wish.size if extends and known.wish else known.size
