# SPDX-License-Identifier: BSD-2-Clause
"""What a provider has to do on one node: each function is a check, and cleans nothing.

The volumes of a check are its own; the node removes what is left of them.
"""

from msgspec.structs import replace

from moorage.model import Disk
from moorage.model.objects import REUSE
from moorage.storage.command import Where
from moorage.storage.printed import parse_capacity, parse_list
from moorage.storage.provider import lists
from moorage.units import Mib

from .bench import Bench, Broken, Doing, NotApplicable, Part, Remark

_A, _B = 0x5A, 0xA7
"""Bytes that are written."""
_LONG = 100
"""Characters of a long name."""
_STRANGE = "certify_no_such_parameter"


def runs(at: Bench) -> Part:
    """It runs: a volume can be made and attached."""
    disk = at.disk()
    yield from at.must("create", disk)
    yield from at.must("attach", disk)


def verify_accepts(at: Bench) -> Part:
    """``verify`` is content with the parameters that were given."""
    yield from at.must("verify", at.disk())


def verify_refuses(at: Bench) -> Part:
    """``verify`` refuses a parameter that nobody listed, if it looks at them."""
    disk = at.disk()
    strange = replace(disk, params={**disk.params, _STRANGE: "1"})
    if (yield from at.script("verify", strange)).ok:
        raise NotApplicable(
            "it takes every parameter; the cluster itself refuses what is not listed"
        )


def create(at: Bench) -> Remark:
    """A new volume can be attached, and is as large as was asked for."""
    where = yield from at.made(at.disk())
    yield from at.expects_size(where, at.order.size, "after create")
    return f"it is reached {'at ' + where.path if where.path else 'by URI only'}"


def create_twice(at: Bench) -> Part:
    """A second ``create`` succeeds, and leaves data and size alone."""
    disk = at.disk()
    where = yield from at.made(disk)
    before = yield from at.size_of(where)
    yield from at.write(where, _A)
    yield from at.must("detach", disk)
    yield from at.must("create", disk)
    where = yield from at.attached(disk)
    yield from at.expects(where, _A, "after a second create")
    _same_size(before, (yield from at.size_of(where)), "create")


def create_foreign(at: Bench) -> Part:
    """``create`` refuses a volume that it did not make, and leaves it alone."""
    disk = at.disk()
    theirs = replace(disk, size=_larger(disk), uuid=at.disk("other").uuid)
    where = yield from at.made(disk)
    before = yield from at.size_of(where)
    yield from at.write(where, _A)
    yield from at.must("detach", disk)
    seen = yield from at.script("create", theirs)
    where = yield from at.attached(disk)
    yield from at.expects(where, _A, "after a create with another size")
    _same_size(before, (yield from at.size_of(where)), "create, with another size,")
    if seen.ok:
        raise Broken("create succeeds although a volume of another size is there")


def attach_twice(at: Bench) -> Part:
    """A second ``attach`` says the same as the first."""
    disk = at.disk()
    first = yield from at.made(disk)
    second = yield from at.attached(disk)
    if first != second:
        raise Broken(f"attach says {_told(first)} first, and then {_told(second)}")


def attach_output(at: Bench) -> Part:
    """``attach`` prints a device or an empty line, then URIs, and nothing else."""
    disk = at.disk()
    yield from at.must("create", disk)
    seen = yield from at.must("attach", disk)
    path, *rest = seen.printed.split("\n")
    if path.strip() and not path.startswith("/"):
        raise Broken(f"the first line that attach prints is no path: {path[:80]!r}")
    for line in rest:
        hypervisor, colon, _ = line.partition(":")
        if line.strip() and not (colon and hypervisor.strip().isalnum()):
            raise Broken(f"attach prints a line that is no URI: {line[:80]!r}")


def device(at: Bench) -> Part:
    """The device that ``attach`` names is a block device."""
    where = yield from at.made(at.disk())
    if not where.path:
        raise NotApplicable("it has no device, but a URI only")
    if not (yield from at.is_block(where.path)):
        raise Broken(f"{where.path} is not a block device")


def uri(at: Bench) -> Part:
    """The URI leads to the same data as the device, if there are both."""
    disk = at.disk()
    where = yield from at.made(disk)
    if at.site.hypervisor not in where.uris:
        raise NotApplicable(f"it has no URI for {at.site.hypervisor}, but a device")
    by_uri = Where(uris=where.uris)
    yield from at.write(by_uri, _A)
    yield from at.expects(where, _A, "by its device" if where.path else "by its URI")


def data_stays(at: Bench) -> Part:
    """What was written is there after ``detach`` and ``attach``."""
    disk = at.disk()
    yield from at.write((yield from at.made(disk)), _A)
    yield from at.must("detach", disk)
    yield from at.expects((yield from at.attached(disk)), _A, "attached again")


def detach_twice(at: Bench) -> Part:
    """A second ``detach`` succeeds, as does one of what was never attached."""
    disk = at.disk()
    yield from at.must("create", disk)
    yield from at.must("detach", disk)
    yield from at.attached(disk)
    yield from at.must("detach", disk)
    yield from at.must("detach", disk)


def setinfo(at: Bench) -> Part:
    """``setinfo`` takes a note, twice, and leaves the data alone."""
    disk = at.disk()
    where = yield from at.made(disk)
    yield from at.write(where, _A)
    yield from at.must("setinfo", disk, "originstname+web1.example.com")
    yield from at.must("setinfo", disk, "x" * 128)
    yield from at.expects((yield from at.attached(disk)), _A, "after setinfo")


def grow(at: Bench) -> Part:
    """``grow`` enlarges a volume that nobody uses, and keeps its data."""
    disk = at.disk()
    yield from at.write((yield from at.made(disk)), _A)
    yield from at.must("detach", disk)
    yield from at.must("grow", disk, _larger(disk))
    where = yield from at.attached(disk)
    yield from at.expects_size(where, _larger(disk), "after grow")
    yield from at.expects(where, _A, "after grow")


def grow_twice(at: Bench) -> Part:
    """A second ``grow`` to the same size succeeds and changes nothing."""
    disk = at.disk()
    yield from at.must("create", disk)
    yield from at.must("grow", disk, _larger(disk))
    before = yield from at.size_of((yield from at.attached(disk)))
    yield from at.must("grow", disk, _larger(disk))
    now = yield from at.size_of((yield from at.attached(disk)))
    _same_size(before, now, "grow")


def grow_open(at: Bench) -> Part:
    """``grow`` works on an attached volume; the next ``attach`` shows the size."""
    disk = at.disk()
    where = yield from at.made(disk)
    if "open" in at.provider.optional:
        yield from at.must("open", disk, exclusive=True)
    yield from at.write(where, _A)
    yield from at.must("grow", disk, _larger(disk))
    where = yield from at.attached(disk)
    yield from at.expects_size(where, _larger(disk), "grown while attached,")
    yield from at.expects(where, _A, "grown while attached,")


def remove(at: Bench) -> Part:
    """After ``remove`` the volume is gone: it cannot be attached."""
    disk = at.disk()
    yield from at.made(disk)
    yield from at.must("detach", disk)
    yield from at.must("remove", disk)
    yield from at.refuses("after remove: the volume is still there", "attach", disk)


def remove_absent(at: Bench) -> Part:
    """``remove`` of what is not there succeeds."""
    disk = at.disk()
    yield from at.must("create", disk)
    yield from at.must("remove", disk)
    yield from at.must("remove", disk)
    yield from at.must("remove", at.disk("b"))


def absent(at: Bench) -> Part:
    """What needs a volume fails where there is none, and makes none."""
    disk = at.disk()
    why = "although there is no such volume"
    yield from at.refuses(why, "attach", disk)
    yield from at.refuses(why, "grow", disk, _larger(disk))
    if "snapshot" in at.provider.optional:
        name = at.copy_of(disk, disk.size).volume
        yield from at.refuses(why, "snapshot", disk, name, disk.size)
    yield from at.refuses(f"after that, {why}", "attach", disk)


def odd_name(at: Bench) -> Part:
    """A volume may be called with dots, dashes, underscores and a plus."""
    yield from _lives(at, at.disk("Web-1_x+y.z"))


def long_name(at: Bench) -> Remark:
    """Names may be long, and differ in the end only."""
    stem = at.disk().volume.ljust(_LONG - 1, "x")
    one, other = (at.disk(volume=f"{stem}{end}") for end in "ab")
    yield from at.write((yield from at.made(one)), _A)
    yield from at.write((yield from at.made(other)), _B)
    yield from at.expects((yield from at.attached(one)), _A, "beside a like name")
    return f"{_LONG} characters"


def nameless(at: Bench) -> Part:
    """A disk needs no name (``VOL_CNAME``)."""
    yield from _lives(at, at.disk(named=False))


def apart(at: Bench) -> Part:
    """Volumes are apart, though one's name begins with the other's."""
    one, other = at.disk("a"), at.disk("ab")
    yield from at.write((yield from at.made(one)), _A)
    yield from at.write((yield from at.made(other)), _B)
    yield from at.expects((yield from at.attached(one)), _A, "beside another one")
    yield from at.must("detach", one)
    yield from at.must("remove", one)
    where = yield from at.attached(other)
    yield from at.expects(where, _B, "when another one is removed,")


def same_cname(at: Bench) -> Part:
    """Two disks may have had one name (``VOL_CNAME``), one after the other."""
    if lists(at.provider, REUSE) and not at.provider.by_uuid:
        raise NotApplicable("it finds a volume by the name of its disk (reuse_data)")
    one = at.disk("a")
    other = replace(at.disk("b"), name=one.name)
    yield from at.write((yield from at.made(one)), _A)
    yield from at.write((yield from at.made(other)), _B)
    yield from at.expects((yield from at.attached(one)), _A, "beside its namesake")


def _lives(at: Bench, disk: Disk) -> Doing[None]:
    yield from at.write((yield from at.made(disk)), _A)
    yield from at.must("detach", disk)
    yield from at.expects((yield from at.attached(disk)), _A, "attached again")
    yield from at.must("detach", disk)
    yield from at.must("remove", disk)
    yield from at.refuses("after remove: the volume is still there", "attach", disk)


def snapshot(at: Bench) -> Part:
    """A snapshot holds what the volume held, whatever is written later."""
    at.needs("snapshot")
    disk = at.disk()
    copy = at.copy_of(disk, disk.size)
    where = yield from at.made(disk)
    yield from at.write(where, _A)
    yield from at.must("snapshot", disk, copy.volume, copy.size)
    yield from at.write((yield from at.attached(disk)), _B)
    at_copy = yield from at.attached(copy)
    yield from at.expects(at_copy, _A, "a snapshot of")
    yield from at.expects_size(at_copy, copy.size, "a snapshot of")


def snapshot_twice(at: Bench) -> Part:
    """A second ``snapshot`` of one name succeeds, and does not take a newer copy."""
    at.needs("snapshot")
    disk = at.disk()
    copy = at.copy_of(disk, disk.size)
    where = yield from at.made(disk)
    yield from at.write(where, _A)
    yield from at.must("snapshot", disk, copy.volume, copy.size)
    yield from at.write((yield from at.attached(disk)), _B)
    yield from at.must("snapshot", disk, copy.volume, copy.size)
    yield from at.expects((yield from at.attached(copy)), _A, "taken twice,")


def snapshot_apart(at: Bench) -> Part:
    """A snapshot is a volume of its own: it can be written and removed."""
    at.needs("snapshot")
    disk = at.disk()
    copy = at.copy_of(disk, disk.size)
    yield from at.write((yield from at.made(disk)), _A)
    yield from at.must("snapshot", disk, copy.volume, copy.size)
    yield from at.write((yield from at.attached(copy)), _B)
    yield from at.expects((yield from at.attached(disk)), _A, "beside its snapshot")
    yield from at.must("detach", copy)
    yield from at.must("remove", copy)
    yield from at.refuses("after remove: the snapshot is still there", "attach", copy)
    yield from at.expects((yield from at.attached(disk)), _A, "without its snapshot")


def open_twice(at: Bench) -> Part:
    """``open`` and ``close`` succeed twice, in both ways of opening."""
    at.needs("open", "close")
    disk = at.disk()
    yield from at.made(disk)
    for exclusive in (True, True, False, False, True):
        yield from at.must("open", disk, exclusive=exclusive)
        yield from at.attached(disk)
    yield from at.must("close", disk)
    yield from at.must("close", disk)
    yield from at.must("detach", disk)


def epoch_rises(at: Bench) -> Part:
    """A higher ``VOL_EPOCH`` is let in, as a number: 10 comes after 9."""
    at.needs("open", "close")
    disk = at.disk()
    yield from at.made(disk)
    for epoch in (9, 10, 11):
        later = replace(disk, epoch=epoch)
        yield from at.attached(later)
        yield from at.must("open", later, exclusive=True)
    yield from at.must("close", later)
    yield from at.must("detach", later)


def listed(at: Bench) -> Part:
    """``list`` shows a volume with its size, and no more when it is removed."""
    at.needs("list")
    disk = at.disk()
    yield from at.must("create", disk)
    sizes = yield from _sizes(at)
    if disk.volume not in sizes:
        raise Broken(f"list does not show volume {disk.volume}")
    if (sizes[disk.volume] or disk.size) < disk.size:
        raise Broken(f"list says {sizes[disk.volume]} MiB, and not {disk.size}")
    yield from at.must("remove", disk)
    if disk.volume in (yield from _sizes(at)):
        raise Broken("list shows a volume that is removed")


def _sizes(at: Bench) -> Doing[dict[str, Mib | None]]:
    seen = yield from at.listed()
    found = parse_list(at.order.provider, seen.printed)
    return {str(one.logical_id[-1]): one.size for one in found}


def capacity(at: Bench) -> Remark:
    """``capacity`` prints total and free MiB, soon."""
    at.needs("capacity")
    seen = yield from at.capacity()
    total, free = parse_capacity(at.order.provider, seen.printed)
    return f"{free} of {total} MiB are free"


def _same_size(before: int, now: int, action: str) -> None:
    if before != now:
        raise Broken(f"a second {action} makes {now} bytes of {before}")


def _larger(disk: Disk) -> Mib:
    return Mib(2 * disk.size)


def _told(where: Where) -> str:
    return ", ".join([where.path or "no device", *sorted(where.uris.values())])
