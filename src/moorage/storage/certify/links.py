# SPDX-License-Identifier: BSD-2-Clause
"""A link in the place of a volume: what a provider that keeps files does with it.

Who may write to a shared directory can put one there, and scripts are root.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from moorage.model import Disk
from moorage.storage.command import Command, Opened, Where

from .bench import Bench, Broken, Doing, NotApplicable, Remark, Step

_PATTERN = 0xC3
_FILE = "file:"


def refused(at: Bench) -> Remark:
    """No symbolic link in the place of a volume's file is followed."""
    other, disk = at.disk("b"), at.disk("a")
    where = yield from at.made(other)
    yield from at.write(where, _PATTERN)
    file = yield from _file(at, other, where)
    yield from at.must("detach", other)
    link = str(PurePosixPath(file).with_name(disk.volume))
    entry = {link: Opened.ENTRY}
    put = Command(("ln", "-s", "--", other.volume, link), images=entry)
    if not (yield Step(put, makes=disk)).ok:
        raise NotApplicable(f"no link can be made beside {file}")
    followed = yield from _followed(at, disk)
    yield Step(Command(("rm", "-f", "--", link), images=entry))
    if not followed:
        return "it is refused"
    told = "it is followed: who may write to its directory reaches files of the node"
    if at.provider.places:
        raise Broken(told)
    raise NotApplicable(f"{told}; it has no places.list")


def _followed(at: Bench, disk: Disk) -> Doing[bool]:
    """Attach what is a link; say whether it is taken for a volume.

    Its content is not looked at: the node itself opens no link that a URI names, and
    what a script takes for a volume it also grows, copies and removes.
    """
    seen = yield from at.script("attach", disk)
    if seen.ok:
        yield from at.script("detach", disk)
    return seen.ok


def _file(at: Bench, disk: Disk, where: Where) -> Doing[str]:
    """Return the path of a volume's file, where the node allows files."""
    for path in _candidates(at, disk, where):
        look = Command(("test", "-s", path), images={path: Opened.FILE})
        if (yield Step(look)).ok:
            return path
    raise NotApplicable(
        "no file of its volumes is seen in the directories that the node allows"
    )


def _candidates(at: Bench, disk: Disk, where: Where) -> Iterator[str]:
    for value in at.order.params.values():
        if str(value).startswith("/"):
            yield f"{value}/{disk.volume}"
    for uri in where.uris.values():
        path = uri.removeprefix(_FILE)
        if path.startswith("/") and PurePosixPath(path).name == disk.volume:
            yield path
