# SPDX-License-Identifier: BSD-2-Clause
"""``drbd``: two logical volumes on two nodes, kept the same by DRBD 8.4.

No configuration file is written: ``drbdsetup`` is told everything, as Ganeti does. A
disk is a resource with one device; each node has a volume with the data and one with
DRBD's metadata, which are driven by the template ``plain``.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace as with_params
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput, Failed
from moorage.model import Disk, MirrorState, Pair, pair_of
from moorage.model.addresses import is_v6, place
from moorage.model.facts import UP_TO_DATE
from moorage.model.pair import META_SIZE
from moorage.model.templates import FACTS
from moorage.storage.base import (
    Can,
    Capabilities,
    Command,
    Examining,
    Finding,
    Holder,
    Measuring,
    Outcome,
    Output,
    Steps,
    Template,
    VolumeRequest,
    Watching,
    Where,
    nothing,
)
from moorage.storage.drbd_status import Resource, devices
from moorage.units import Mib

from .plain import Plain

_PROTOCOL = "C"
"""A write is done when it is on both disks: the only one that two writers can have."""
_HMAC = "md5"
_CONNECTING = 10
"""Seconds that a node waits for the other one before it goes on alone."""
_OLD = "_replaced"
"""What the name of a volume ends with whose copy is being made anew."""
_SOURCE = "0:0:0:1:1"
"""Of metadata: no other copy is known, and the data is consistent and up to date."""
_ON_ERROR = "detach"
"""What becomes of a disk that fails: the other copy serves the guest."""

Asking = Generator[Command, Output, MirrorState | None]
"""Yield commands, receive outputs, return what a device is doing."""


def _address(address: str, port: int) -> str:
    """Return where a copy listens, as drbdsetup writes it."""
    return f"{'ipv6' if is_v6(address) else 'ipv4'}:{place(address, port)}"


class Drbd(Template):
    """A disk on two nodes, of which one writes and the other follows."""

    name = "drbd"
    capabilities = Capabilities(
        facts=FACTS["drbd"],
        can=Can.CREATE | Can.GROW | Can.OPEN | Can.SETINFO,
        programs=(*Plain.capabilities.programs, "drbdsetup", "drbdmeta"),
        modules=("drbd",),
    )

    # -- pure questions ----------------------------------------------------------------

    @classmethod
    def logical_id(cls, born: VolumeRequest) -> tuple[Any, ...]:
        """Return both nodes, the port, both minors and the secret."""
        return cls._born(born).logical_id

    @classmethod
    def children(cls, born: VolumeRequest, size: Mib) -> tuple[Disk, ...]:
        """Return the volumes of each copy: data and metadata."""
        (group, name), nodes = Plain.logical_id(born), cls._born(born).nodes
        beside = str(born.params.get("metavg") or group)
        parts = (("data", group, size), ("meta", beside, Mib(META_SIZE)))
        return tuple(
            Disk(
                uuid=f"{born.unique}-{part}",
                dev_type=Plain.name,
                logical_id=(where, f"{name}_{part}"),
                size=room,
                nodes=nodes,
            )
            for part, where, room in parts
        )

    @classmethod
    def _born(cls, born: VolumeRequest) -> Pair:
        if born.pair is None:
            raise BadInput(
                "a mirrored disk needs two nodes, and this request names none",
                hint="for disks with one copy: gnt-instance modify -t drbd -n NODE",
            )
        return born.pair

    @classmethod
    def unit_template(cls) -> str:
        """Return the template of the volumes."""
        return Plain.name

    @classmethod
    def occupies(cls, size: Mib) -> Mib:
        """Return the data and the metadata; their groups are taken for one."""
        return Mib(size + META_SIZE)

    @classmethod
    def unit_key(
        cls,
        settings: Mapping[str, str],
        params: Mapping[str, Any],
        logical_id: Sequence[Any] = (),
    ) -> str:
        """Return the volume group of the data."""
        del logical_id
        return Plain.unit_key(settings, params)

    # -- verbs -------------------------------------------------------------------------

    def create(self, disk: Disk) -> Steps:
        """Make the volumes of this node's copy, and its metadata.

        The data of the pair's first node counts, and the other copy is made from it.
        """
        resource = yield from self._shown(disk)
        if resource.disk:
            self._check_own(disk, resource)
            return Outcome.UNCHANGED
        made: list[Disk] = []
        try:
            for child in disk.children:
                outcome = yield from self._plain.create(child)
                made += [child] if outcome is Outcome.CHANGED else []
            yield from self.initialise(disk)
        except Failed:
            for child in made:
                yield from self._plain.remove(child)
            raise
        return Outcome.CHANGED

    def remove(self, disk: Disk) -> Steps:
        """Stop the device, and destroy the volumes of this node's copy."""
        found = yield from self._down(disk)
        for child in disk.children:
            removed = yield from self._plain.remove(child)
            found = Outcome.CHANGED if Outcome.CHANGED in (found, removed) else found
        return found

    def examine(self) -> Examining:
        """Ask for the volume groups of data and of metadata."""
        found = yield from Plain(self.site).examine()
        meta = self.site.params.get("metavg")
        if not meta:
            return found
        site = with_params(self.site, params={"vg": meta})
        return (*found, *(yield from Plain(site).examine()))

    def attach(self, disk: Disk) -> Finding:
        """Set the device up, as far as it is not, and seek the other node."""
        data, meta = yield from self._volumes(disk)
        resource, minor = (yield from self._shown(disk)), self._minor(disk)
        self._check_own(disk, resource)
        if not resource.known:
            yield _setup("new-resource", _resource(minor))
        if not resource.device:
            yield _setup("new-minor", _resource(minor), f"{minor}", "0")
        if not resource.disk:
            yield self._meta(disk, "apply-al")  # what a power loss left unfinished
            size = f"--size={disk.size * 2048}s"
            how = f"--on-io-error={_ON_ERROR}"
            yield _setup("attach", f"{minor}", data, meta, "0", size, how)
        yield from self._connected(disk, resource)
        return Where(path=f"/dev/drbd{minor}", block=True)

    def _check_own(self, disk: Disk, resource: Resource) -> None:
        """Raise `Failed` if the disk's number has been given to something else here."""
        if _is_of_another(disk, resource):
            raise Failed(
                f"minor {self._minor(disk)} of node {self.site.node} is in use: it has "
                f"{resource.disk}, and not {_path(disk.children[0])} of disk "
                f"{disk.label}",
                disk=disk.uuid,
            )

    def _volumes(self, disk: Disk) -> Generator[Command, Output, tuple[str, str]]:
        paths = []
        for child in disk.children:
            where = yield from self._plain.attach(child)
            paths.append(str(where.path))
        return paths[0], paths[1]

    def _connected(self, disk: Disk, resource: Resource) -> Steps:
        """Seek the other node where it is said to be, and nowhere else."""
        mine, other = self._addresses(disk)
        if resource.peer and f"ipv4:{resource.peer}" == other:
            return Outcome.UNCHANGED
        name = _resource(self._minor(disk))
        if resource.peer:
            yield _setup("disconnect", mine, f"ipv4:{resource.peer}")
        yield _setup(
            *("connect", name, mine, other, f"--protocol={_PROTOCOL}"),
            f"--cram-hmac-alg={_HMAC}",
            f"--shared-secret={_pair(disk).secret}",
            "--after-sb-0pri=discard-zero-changes",
            "--after-sb-1pri=consensus",
        )
        return Outcome.CHANGED

    def detach(self, disk: Disk) -> Steps:
        """Stop the device; both volumes stay."""
        found = yield from self._down(disk)
        for child in disk.children:
            yield from self._plain.detach(child)
        return found

    def _down(self, disk: Disk) -> Steps:
        resource = yield from self._shown(disk)
        if not resource.known or _is_of_another(disk, resource):
            return Outcome.UNCHANGED
        if resource.device:
            yield _setup("secondary", f"{self._minor(disk)}")
        yield _setup("down", _resource(self._minor(disk)))
        return Outcome.CHANGED

    def open(self, disk: Disk, *, exclusive: bool) -> Steps:
        """Become the node that writes; not exclusively, beside the other one.

        DRBD itself refuses a second writer, and a copy that is not up to date.
        """
        state = yield from self._state(disk)
        primary = state is not None and state.role == "Primary"
        if not exclusive:
            yield from self._two(disk, wanted=True)
        if not primary:
            yield from self._met(disk, state)
            yield _setup("primary", f"{self._minor(disk)}")
        if exclusive:
            yield from self._two(disk, wanted=False)
        return Outcome.UNCHANGED if primary else Outcome.CHANGED

    def seize(self, disk: Disk) -> Steps:
        """Become the node that writes, although this copy may lack what was written."""
        state = yield from self._state(disk)
        yield from self._met(disk, state)
        yield _setup("primary", f"{self._minor(disk)}", "--force")
        yield from self._two(disk, wanted=False)
        return Outcome.CHANGED

    def _met(self, disk: Disk, state: MirrorState | None) -> Steps:
        """Wait for the other node: who goes on alone may go on with old data."""
        if (state and state.connected) or self._other(disk).offline:
            return nothing()
        return self.meet(disk)

    def close(self, disk: Disk) -> Steps:
        """Stop writing, and follow the other node."""
        state = yield from self._state(disk)
        if state is None:
            return Outcome.UNCHANGED
        if state.role == "Primary":
            yield _setup("secondary", f"{self._minor(disk)}")
        yield from self._two(disk, wanted=False)
        return Outcome.CHANGED

    def _two(self, disk: Disk, *, wanted: bool) -> Steps:
        """Let both nodes write, or one."""
        resource = yield from self._shown(disk)
        if resource.two == wanted or not resource.peer:
            return Outcome.UNCHANGED
        word = "yes" if wanted else "no"
        both = self._addresses(disk)
        yield _setup("net-options", *both, f"--allow-two-primaries={word}")
        return Outcome.CHANGED

    def grow(self, disk: Disk, to: Mib) -> Steps:
        """Enlarge this node's copy; on the node that writes, the device too.

        The other copy must have grown before.
        """
        found = yield from self._plain.grow(disk.children[0], to)
        state = yield from self._state(disk)
        if state is not None and state.role == "Primary":
            size = f"--size={to * 2048}s"
            yield _setup("resize", f"{self._minor(disk)}", size)
            return Outcome.CHANGED
        return found

    def setinfo(self, disk: Disk, text: str) -> Steps:
        """Keep the note beside the data's volume."""
        return self._plain.setinfo(disk.children[0], text)

    def measure(self, disk: Disk) -> Measuring:
        """Return the size of the data's volume."""
        return self._plain.measure(disk.children[0])

    # -- verbs of a mirror -------------------------------------------------------------

    def mirrors(self) -> Watching:
        """Return every device of this node that is set up."""
        told = yield Command(("cat", "/proc/drbd"), check=False, reads=True)
        return devices(told.stdout)

    def initialise(self, disk: Disk) -> Steps:
        """Write new metadata: on the first node of the pair, the data there counts."""
        pair = _pair(disk)
        yield self._meta(disk, "create-md")
        if self._here(pair) == pair.nodes[0]:
            generation = pair.secret[:16].upper()
            yield self._meta(disk, "set-gi", f"{generation}:{_SOURCE}")
        return Outcome.CHANGED

    def meet(self, disk: Disk) -> Steps:
        """Wait until both nodes are connected; some seconds, and then go on."""
        limits = ("--wfc-timeout", "--degr-wfc-timeout", "--outdated-wfc-timeout")
        words = [f"{limit}={_CONNECTING}" for limit in limits]
        yield Command(
            ("drbdsetup", "wait-connect", f"{self._minor(disk)}", *words),
            check=False,
            reads=True,
        )
        return Outcome.UNCHANGED

    def renew(self, disk: Disk) -> Steps:
        """Put new volumes in the place of this node's, and fill them from the other."""
        resource = yield from self._shown(disk)
        kept = yield from self._are_kept(disk)
        if kept and resource.disk:
            return Outcome.UNCHANGED
        if resource.disk:
            yield _setup("detach", f"{self._minor(disk)}")
        yield from self._swapped(disk)
        for child in disk.children:
            yield from self._plain.create(child)
        yield self._meta(disk, "create-md")
        yield from self.attach(disk)
        return Outcome.CHANGED

    def _swapped(self, disk: Disk) -> Steps:
        """Keep the volumes that are not kept aside yet; one that is lost cannot be."""
        for child in disk.children:
            aside = yield from self._plain.there(_aside(child))
            found = yield from self._plain.there(child)
            if found and not aside:
                yield _renamed(child, _aside(child))
        return Outcome.CHANGED

    def _are_kept(self, disk: Disk) -> Generator[Command, Output, bool]:
        for child in disk.children:
            found = yield from self._plain.there(_aside(child))
            if found:
                return True
        return False

    def restore(self, disk: Disk) -> Steps:
        """Put the old volumes back, and remove what took their place."""
        kept = yield from self._are_kept(disk)
        resource = yield from self._shown(disk)
        if kept and resource.disk:
            yield _setup("detach", f"{self._minor(disk)}")
        for child in disk.children if kept else ():
            aside = yield from self._plain.there(_aside(child))
            if aside:
                yield from self._plain.remove(child)
                yield _renamed(_aside(child), child)
        if resource.known:
            yield from self.attach(disk)
        return Outcome.CHANGED

    def release(self, disk: Disk) -> Steps:
        """Remove the old volumes, once there is a good copy besides them."""
        found = Outcome.UNCHANGED
        if (yield from self._are_kept(disk)):
            self._check_replaced(disk, (yield from self._state(disk)))
        for child in disk.children:
            removed = yield from self._plain.remove(_aside(child))
            found = Outcome.CHANGED if Outcome.CHANGED in (found, removed) else found
        return found

    def _check_replaced(self, disk: Disk, state: MirrorState | None) -> None:
        if state is None or UP_TO_DATE not in (state.disk, state.peer_disk):
            raise Failed(
                f"node {self.site.node} keeps an old copy of disk {disk.label}, and "
                "sees no good one",
                hint=f"gnt-disk info {disk.label} shows how the copies are",
                disk=disk.uuid,
            )

    # -- parts of verbs ----------------------------------------------------------------

    @property
    def _plain(self) -> Plain:
        return Plain(self.site)

    def _state(self, disk: Disk) -> Asking:
        """Return what the device is doing; None if it is not set up."""
        found, minor = (yield from self.mirrors()), self._minor(disk)
        return next((one for one in found if one.minor == minor), None)

    def _shown(self, disk: Disk) -> Generator[Command, Output, Resource]:
        name = _resource(self._minor(disk))
        told = yield Command(("drbdsetup", "show", name), check=False, reads=True)
        return Resource() if told.code else Resource.read(told.stdout)

    def _meta(self, disk: Disk, action: str, *more: str) -> Command:
        minor, device = f"{self._minor(disk)}", _path(disk.children[1])
        words = ("drbdmeta", "--force", minor, "v08", device, "0", action)
        return Command((*words, *more))

    def _here(self, pair: Pair) -> str:
        """Return this node's uuid."""
        names = [one.name for one in self.site.holders]
        if self.site.node not in names:
            raise Failed(f"node {self.site.node} keeps no copy of the disk")
        return pair.nodes[names.index(self.site.node)]

    def _minor(self, disk: Disk) -> int:
        pair = _pair(disk)
        return pair.minor(self._here(pair))

    def _other(self, disk: Disk) -> Holder:
        pair = _pair(disk)
        return self.site.holders[1 - pair.nodes.index(self._here(pair))]

    def _addresses(self, disk: Disk) -> tuple[str, str]:
        pair = _pair(disk)
        one, other = (_address(at.address, pair.port) for at in self.site.holders)
        return (one, other) if self._here(pair) == pair.nodes[0] else (other, one)


def _pair(disk: Disk) -> Pair:
    pair = pair_of(disk)
    if pair is None or len(disk.children) != 2:
        raise Failed(f"disk {disk.label} is no mirrored disk", disk=disk.uuid)
    return pair


def _is_of_another(disk: Disk, resource: Resource) -> bool:
    """Whether what is set up under a disk's number has other data."""
    return bool(resource.disk) and resource.disk != _path(disk.children[0])


def _aside(volume: Disk) -> Disk:
    """Return a volume under the name that it has while it is being replaced."""
    group, name = volume.logical_id
    return replace(volume, logical_id=(group, f"{name}{_OLD}"))


def _renamed(volume: Disk, to: Disk) -> Command:
    return Command(("lvrename", *volume.logical_id, to.logical_id[-1]))


def _resource(minor: int) -> str:
    return f"resource{minor}"


def _path(volume: Disk) -> str:
    return "/dev/" + "/".join(map(str, volume.logical_id))


def _setup(*words: str) -> Command:
    return Command(("drbdsetup", *words))
