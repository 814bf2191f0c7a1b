# SPDX-License-Identifier: BSD-2-Clause
"""What a provider has to do on two nodes: parts of a check, each on one of them.

A provider whose volumes are local to a node is none that breaks the contract; but it
has to say so: what the other node sees is the same volume, or none.
"""

from msgspec.structs import replace

from moorage.model import Disk
from moorage.units import Mib

from .bench import Bench, Doing, NotApplicable, Part, Remark

_PATTERN, _OTHER = 0x69, 0x96
LOCAL = "its volumes are local to a node: the second node does not see them"


def write(at: Bench) -> Part:
    """First node: make a volume, write it, and let it go."""
    disk = yield from _offer(at)
    yield from at.write((yield from at.made(disk)), _PATTERN)
    yield from at.must("detach", disk)


def read(at: Bench) -> Remark:
    """Second node: see the same data, or no volume."""
    disk = yield from _seen_here(at)
    where = yield from at.attached(disk)
    yield from at.expects(where, _PATTERN, "on the second node")
    yield from at.write(where, _OTHER)
    yield from at.must("detach", disk)
    return "the nodes share its volumes"


def read_back(at: Bench) -> Part:
    """First node: see what the second one wrote."""
    disk = at.disk()
    yield from at.expects((yield from at.attached(disk)), _OTHER, "back on the first")


def grow(at: Bench) -> Part:
    """First node: make a volume and enlarge it."""
    disk = yield from _offer(at)
    yield from at.made(disk)
    yield from at.must("grow", disk, Mib(2 * disk.size))
    yield from at.must("detach", disk)


def grown(at: Bench) -> Part:
    """Second node: see the new size."""
    disk = yield from _seen_here(at)
    where = yield from at.attached(disk)
    yield from at.expects_size(where, Mib(2 * disk.size), "on the second node")


def hold(at: Bench) -> Part:
    """First node: make a volume, and open it alone."""
    at.needs("open", "close")
    disk = yield from _offer(at)
    yield from at.made(disk)
    yield from at.must("open", disk, exclusive=True)


def contend(at: Bench) -> Remark:
    """Second node: may not open what another one has opened alone."""
    disk = yield from _seen_here(at)
    seen = yield from at.script("attach", disk)
    if not seen.ok:
        return "it is refused with attach"
    why = "while another node has opened the volume alone, in the same epoch"
    yield from at.refuses(why, "open", disk, exclusive=True)
    return ""


def share(at: Bench) -> Part:
    """First node: share what it has opened alone."""
    at.needs("open", "close")
    disk = yield from _offer(at)
    yield from at.made(disk)
    yield from at.must("open", disk, exclusive=True)
    yield from at.must("open", disk, exclusive=False)


def join(at: Bench) -> Part:
    """Second node: open it, too, as for a migration."""
    disk = yield from _seen_here(at)
    yield from at.attached(disk)
    yield from at.must("open", disk, exclusive=False)
    yield from at.attached(disk)


def leave(at: Bench) -> Part:
    """First node: close it."""
    yield from at.must("close", at.disk())


def alone(at: Bench) -> Part:
    """Second node: open it alone, when the first has closed it."""
    disk = at.disk()
    yield from at.attached(disk)
    yield from at.must("open", disk, exclusive=True)
    yield from at.write((yield from at.attached(disk)), _OTHER)


def both(at: Bench) -> Part:
    """Second node: attach what is attached on the first."""
    yield from at.attached((yield from _seen_here(at)))


def make(at: Bench) -> Part:
    """First node: make a volume, and keep it attached."""
    yield from at.made((yield from _offer(at)))


def early(at: Bench) -> Part:
    """First node: open a volume in an early epoch."""
    at.needs("open", "close")
    disk = replace((yield from _offer(at)), epoch=9)
    yield from at.made(disk)
    yield from at.must("open", disk, exclusive=True)


def late(at: Bench) -> Part:
    """Second node: take it over in a later one: the first node may be dead."""
    disk = replace((yield from _seen_here(at)), epoch=10)
    for action, how in (("attach", {}), ("open", {"exclusive": True})):
        seen = yield from at.script(action, disk, **how)
        if not seen.ok:
            raise NotApplicable(
                "it does not look at VOL_EPOCH: what a dead node holds, somebody has "
                f"to release ({seen.said})"
            )


def stale(at: Bench) -> Part:
    """First node: is too late."""
    disk = replace(at.disk(), epoch=9)
    seen = yield from at.script("open", disk, exclusive=True)
    if seen.ok:
        raise NotApplicable(
            "it does not look at VOL_EPOCH: a node that was cut off is not kept out"
        )


def let_go(at: Bench) -> Part:
    """First node: make a volume, and let it go."""
    disk = yield from _offer(at)
    yield from at.made(disk)
    yield from at.must("detach", disk)


def removed(at: Bench) -> Part:
    """Second node: remove the volume, which is attached nowhere."""
    disk = yield from _seen_here(at)
    yield from at.must("remove", disk)


def gone(at: Bench) -> Part:
    """First node: see that it is gone."""
    yield from at.refuses("although the other node removed it", "attach", at.disk())


def _offer(at: Bench) -> Doing[Disk]:
    """Make the volume by which the second node sees whether they share; return ours."""
    yield from at.must("create", at.disk("p"))
    return at.disk()


def _seen_here(at: Bench) -> Doing[Disk]:
    """Return the disk of this check, if this node sees its volumes.

    Whether it does is asked with a volume that nobody holds.

    Raises
    ------
    NotApplicable
        If they are local to a node.
    """
    seen = yield from at.script("attach", at.disk("p"))
    if not seen.ok:
        raise NotApplicable(LOCAL)
    yield from at.must("detach", at.disk("p"))
    return at.disk()
