# SPDX-License-Identifier: BSD-2-Clause
"""``drbd``: two logical volumes on two nodes, kept the same by DRBD 8.4.

No configuration file is written: ``drbdsetup`` is told everything, as Ganeti does. A
disk is a resource with one device; each node has a volume with the data and one with
DRBD's metadata, which are driven by the template ``plain``.
"""

from dataclasses import replace as with_params
from typing import Any

from moorage.disk_templates import FACTS, METADATA
from moorage.errors import BadInput, Failed
from moorage.model import Disk, MirrorState, Need, Pair, Unit
from moorage.storage import drbd_aside, drbd_options
from moorage.storage.base import VolumeRequest
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import Command, Id, Outcome, Params, Settings, Steps, Where
from moorage.storage.drbd_side import (
    Side,
    is_of_another,
    pair_kept,
    resource_name,
    setup,
)
from moorage.storage.drbd_status import Resource, devices
from moorage.storage.mirrored import Mirrored
from moorage.units import Mib

from .plain import Plain

_HMAC = "md5"
_CONNECTING = 10
"""Seconds that a node waits for the other one before it goes on alone."""
_SOURCE = "0:0:0:1:1"
"""Of metadata: no other copy is known, and the data is consistent and up to date."""


class Drbd(Mirrored):
    """A disk on two nodes, of which one writes and the other follows."""

    name = "drbd"
    capabilities = Capabilities(
        facts=FACTS["drbd"],
        can=Can.CREATE | Can.GROW | Can.OPEN | Can.SETINFO,
        programs=(*Plain.capabilities.programs, "drbdsetup", "drbdmeta"),
        modules=("drbd",),
    )

    @classmethod
    def logical_id(cls, request: VolumeRequest) -> tuple[Any, ...]:
        """Return both nodes, the port, both minors and the secret."""
        return cls._pair(request).logical_id

    @classmethod
    def parameters(cls, given: Params) -> dict[str, Any]:
        """Return the parameters that the disk keeps."""
        found = super().parameters(given)
        drbd_options.check(found)
        return found

    @classmethod
    def check_made(cls, disk: Disk) -> None:
        """Raise `BadInput` unless a disk has a pair's identity, and two volumes."""
        super().check_made(disk)
        if len(disk.children) != 2:
            raise BadInput(
                f"disk {disk.label} is no mirrored disk: each copy has two volumes, "
                "for data and metadata",
                disk=disk.uuid,
            )

    @classmethod
    def children(cls, request: VolumeRequest, size: Mib) -> tuple[Disk, ...]:
        """Return the volumes of each copy: data and metadata."""
        (group, name), nodes = Plain.logical_id(request), cls._pair(request).nodes
        beside = str(request.params.get("metavg") or group)
        parts = (("data", group, size), ("meta", beside, Mib(METADATA)))
        stripes = {
            part: {"stripes": request.params[f"{part}-stripes"]}
            for part in ("data", "meta")
            if f"{part}-stripes" in request.params
        }
        return tuple(
            Disk(
                uuid=f"{request.unique}-{part}",
                dev_type=Plain.name,
                logical_id=(where, f"{name}_{part}"),
                size=room,
                nodes=nodes,
                params=stripes.get(part, {}),
            )
            for part, where, room in parts
        )

    @classmethod
    def _pair(cls, request: VolumeRequest) -> Pair:
        if request.pair is None:
            raise BadInput(
                "a mirrored disk needs two nodes, and this request names none",
                hint="for disks with one copy: gnt-instance modify -t drbd -n NODE",
            )
        return request.pair

    @classmethod
    def unit_key(cls, settings: Settings, params: Params, logical_id: Id = ()) -> str:
        """Return the volume group of the data."""
        del logical_id
        return Plain.unit_key(settings, params)

    @classmethod
    def unit_keys(cls, settings: Settings, params: Params) -> tuple[str, ...]:
        """Return the volume groups of the data and of the metadata."""
        (data,) = Plain.unit_keys(settings, params)
        return tuple(dict.fromkeys((data, str(params.get("metavg") or data))))

    def create(self, disk: Disk) -> Steps[Outcome]:
        """Make the volumes of this node's copy, and its metadata.

        The data of the pair's first node counts, and the other copy is made from it.
        """
        resource = yield from self._shown(disk)
        if resource.disk:
            self._side(disk).check_own(resource)
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

    def remove(self, disk: Disk) -> Steps[Outcome]:
        """Stop the device, and destroy the volumes of this node's copy."""
        found = yield from self._down(disk)
        for child in disk.children:
            removed = yield from self._plain.remove(child)
            found = Outcome.CHANGED if Outcome.CHANGED in (found, removed) else found
        return found

    def room(self) -> Steps[tuple[Unit, ...]]:
        """Ask for the volume groups: nodes may have no other template enabled."""
        return (yield from Plain(self.site).room())

    def examine(self) -> Steps[tuple[Need, ...]]:
        """Ask for the volume groups of data and of metadata."""
        found = yield from Plain(self.site).examine()
        meta = self.site.params.get("metavg")
        if not meta:
            return found
        site = with_params(self.site, params={"vg": meta})
        return (*found, *(yield from Plain(site).examine()))

    def attach(self, disk: Disk) -> Steps[Where]:
        """Set the device up, as far as it is not, and seek the other node."""
        data, meta = yield from self._volumes(disk)
        resource, minor = (yield from self._shown(disk)), self._side(disk).minor
        self._side(disk).check_own(resource)
        if not resource.known:
            yield setup("new-resource", resource_name(minor))
        if not resource.device:
            yield setup("new-minor", resource_name(minor), f"{minor}", "0")
        if not resource.disk:
            yield self._side(disk).meta("apply-al")  # what a power loss left unfinished
            size = f"--size={disk.size * 2048}s"
            told = drbd_options.of_disk(disk.params)
            yield setup("attach", f"{minor}", data, meta, "0", size, *told)
        yield from self._connected(disk, resource)
        return Where(path=f"/dev/drbd{minor}", block=True)

    def found(self, disk: Disk) -> Steps[Where]:
        """Return the device that Ganeti set up, if it is this disk's."""
        self._side(disk).check_found((yield from self._shown(disk)))
        return Where(path=f"/dev/drbd{self._side(disk).minor}", block=True)

    def _volumes(self, disk: Disk) -> Steps[tuple[str, str]]:
        paths = []
        for child in disk.children:
            where = yield from self._plain.attach(child)
            paths.append(str(where.path))
        return paths[0], paths[1]

    def _connected(self, disk: Disk, resource: Resource) -> Steps[Outcome]:
        """Seek the other node where it is said to be, and nowhere else."""
        mine, other = self._side(disk).addresses
        peer = f"{other.partition(':')[0]}:{resource.peer}"
        if resource.peer and peer == other:
            return Outcome.UNCHANGED
        name = resource_name(self._side(disk).minor)
        if resource.peer:
            yield setup("disconnect", mine, peer)
        secret = pair_kept(disk).secret
        yield setup(
            *("connect", name, mine, other, f"--protocol={drbd_options.PROTOCOL}"),
            f"--cram-hmac-alg={_HMAC}",
            # drbdsetup takes it by no other way: no file, no input, no variable.
            f"--shared-secret={secret}",
            "--after-sb-0pri=discard-zero-changes",
            "--after-sb-1pri=consensus",
            *drbd_options.of_connection(disk.params),
            secrets=(secret,),
        )
        return Outcome.CHANGED

    def tune(self, disk: Disk) -> Steps[Outcome]:
        """Tell a device that is set up what its parameters say now."""
        resource, minor = (yield from self._shown(disk)), self._side(disk).minor
        if not resource.known or is_of_another(disk, resource):
            return Outcome.UNCHANGED
        if resource.disk:
            told = drbd_options.of_disk(disk.params)
            yield setup("disk-options", f"{minor}", "--set-defaults", *told)
        if resource.peer:
            # Not by --set-defaults: it would take two writers' leave from a migration.
            told = drbd_options.of_connection(disk.params, all_of_them=True)
            yield setup("net-options", *self._side(disk).addresses, *told)
        return Outcome.CHANGED

    def detach(self, disk: Disk) -> Steps[Outcome]:
        """Stop the device; both volumes stay."""
        found = yield from self._down(disk)
        for child in disk.children:
            yield from self._plain.detach(child)
        return found

    def _down(self, disk: Disk) -> Steps[Outcome]:
        resource = yield from self._shown(disk)
        if not resource.known or is_of_another(disk, resource):
            return Outcome.UNCHANGED
        if resource.device:
            yield setup("secondary", f"{self._side(disk).minor}")
        yield setup("down", resource_name(self._side(disk).minor))
        return Outcome.CHANGED

    def open(self, disk: Disk, *, exclusive: bool) -> Steps[Outcome]:
        """Become the node that writes; not exclusively, beside the other one.

        DRBD itself refuses a second writer, and a copy that is not up to date. Alone it
        takes an old copy for a good one: so the other node must be in sight.
        """
        return (yield from self._opened(disk, exclusive=exclusive, alone=False))

    def open_alone(self, disk: Disk) -> Steps[Outcome]:
        """Become the node that writes, also when the other one cannot be reached."""
        return (yield from self._opened(disk, exclusive=True, alone=True))

    def _opened(self, disk: Disk, *, exclusive: bool, alone: bool) -> Steps[Outcome]:
        state = yield from self._state(disk)
        primary = state is not None and state.role == "Primary"
        if not exclusive:
            yield from self._two(disk, wanted=True)
        if not primary:
            yield from self._met(disk, state, alone=alone)
            yield setup("primary", f"{self._side(disk).minor}")
        if exclusive:
            yield from self._two(disk, wanted=False)
        return Outcome.UNCHANGED if primary else Outcome.CHANGED

    def seize(self, disk: Disk) -> Steps[Outcome]:
        """Become the node that writes, although this copy may lack what was written."""
        state = yield from self._state(disk)
        yield from self._met(disk, state, alone=True)
        yield setup("primary", f"{self._side(disk).minor}", "--force")
        yield from self._two(disk, wanted=False)
        return Outcome.CHANGED

    def _met(
        self, disk: Disk, state: MirrorState | None, *, alone: bool
    ) -> Steps[Outcome]:
        """Wait for the other node: who goes on alone may go on with old data."""
        if (state and state.connected) or self._side(disk).other.offline:
            return Outcome.UNCHANGED
        found = yield from self.meet(disk)
        if not alone:
            self._side(disk).check_met((yield from self._state(disk)))
        return found

    def close(self, disk: Disk) -> Steps[Outcome]:
        """Stop writing, and follow the other node."""
        state = yield from self._state(disk)
        if state is None:
            return Outcome.UNCHANGED
        if state.role == "Primary":
            yield setup("secondary", f"{self._side(disk).minor}")
        yield from self._two(disk, wanted=False)
        return Outcome.CHANGED

    def _two(self, disk: Disk, *, wanted: bool) -> Steps[Outcome]:
        """Let both nodes write, or one."""
        resource = yield from self._shown(disk)
        if resource.two == wanted or not resource.peer:
            return Outcome.UNCHANGED
        word = "yes" if wanted else "no"
        both = self._side(disk).addresses
        yield setup("net-options", *both, f"--allow-two-primaries={word}")
        return Outcome.CHANGED

    def grow(self, disk: Disk, to: Mib) -> Steps[Outcome]:
        """Enlarge this node's copy; on the node that writes, the device too.

        The other copy must have grown before.
        """
        found = yield from self._plain.grow(disk.children[0], to)
        state = yield from self._state(disk)
        if state is not None and state.role == "Primary":
            size = f"--size={to * 2048}s"
            yield setup("resize", f"{self._side(disk).minor}", size)
            return Outcome.CHANGED
        return found

    def setinfo(self, disk: Disk, text: str) -> Steps[Outcome]:
        """Keep the note beside the data's volume."""
        return self._plain.setinfo(disk.children[0], text)

    def measure(self, disk: Disk) -> Steps[Mib]:
        """Return the size of the data's volume."""
        return self._plain.measure(disk.children[0])

    def mirrors(self) -> Steps[tuple[MirrorState, ...]]:
        """Return every device of this node that is set up."""
        told = yield Command(("cat", "/proc/drbd"), check=False, reads=True)
        return devices(told.stdout)

    def initialise(self, disk: Disk) -> Steps[Outcome]:
        """Write new metadata: on the first node of the pair, the data there counts."""
        pair = pair_kept(disk)
        yield self._side(disk).meta("create-md")
        if self._side(disk).here == pair.nodes[0]:
            generation = pair.secret[:16].upper()
            yield self._side(disk).meta("set-gi", f"{generation}:{_SOURCE}")
        return Outcome.CHANGED

    def meet(self, disk: Disk) -> Steps[Outcome]:
        """Wait until both nodes are connected; some seconds, and then go on."""
        limits = ("--wfc-timeout", "--degr-wfc-timeout", "--outdated-wfc-timeout")
        words = [f"{limit}={_CONNECTING}" for limit in limits]
        yield Command(
            ("drbdsetup", "wait-connect", f"{self._side(disk).minor}", *words),
            check=False,
            reads=True,
        )
        return Outcome.UNCHANGED

    def renew(self, disk: Disk) -> Steps[Outcome]:
        """Put new volumes in the place of this node's, and fill them from the other."""
        resource = yield from self._shown(disk)
        kept = yield from drbd_aside.are_kept(self._plain, disk)
        if kept and resource.disk:
            return Outcome.UNCHANGED
        if resource.disk:
            yield setup("detach", f"{self._side(disk).minor}")
        yield from drbd_aside.keep(self._plain, disk)
        for child in disk.children:
            yield from self._plain.create(child)
        yield self._side(disk).meta("create-md")
        yield from self.attach(disk)
        return Outcome.CHANGED

    def restore(self, disk: Disk) -> Steps[Outcome]:
        """Put the old volumes back, and remove what took their place."""
        kept = yield from drbd_aside.are_kept(self._plain, disk)
        resource = yield from self._shown(disk)
        if kept and resource.disk:
            yield setup("detach", f"{self._side(disk).minor}")
        if kept:
            yield from drbd_aside.put_back(self._plain, disk)
        if resource.known:
            yield from self.attach(disk)
        return Outcome.CHANGED

    def release(self, disk: Disk) -> Steps[Outcome]:
        """Remove the old volumes, once there is a good copy besides them."""
        if (yield from drbd_aside.are_kept(self._plain, disk)):
            self._side(disk).check_replaced((yield from self._state(disk)))
        return (yield from drbd_aside.drop(self._plain, disk))

    @property
    def _plain(self) -> Plain:
        return Plain(self.site)

    def _state(self, disk: Disk) -> Steps[MirrorState | None]:
        """Return what the device is doing; None if it is not set up."""
        found, minor = (yield from self.mirrors()), self._side(disk).minor
        return next((one for one in found if one.minor == minor), None)

    def _shown(self, disk: Disk) -> Steps[Resource]:
        name = resource_name(self._side(disk).minor)
        told = yield Command(("drbdsetup", "show", name), check=False, reads=True)
        return Resource() if told.code else Resource.read(told.stdout)

    def _side(self, disk: Disk) -> Side:
        return Side(self.site, disk)
