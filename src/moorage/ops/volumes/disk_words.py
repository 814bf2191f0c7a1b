# SPDX-License-Identifier: BSD-2-Clause
"""From the words of a request to the disk that is wanted.

Words come in two forms: fields of an opcode, and Ganeti's ``--disk``, where fields and
parameters of a template are mixed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from moorage.disk_templates import PROVIDED
from moorage.errors import BadInput
from moorage.model import Config, Disk, StoragePool
from moorage.model.objects import REUSE, reuses
from moorage.storage import Mirror, Reach, Template
from moorage.storage.templates import template_named
from moorage.storage.validation import flag
from moorage.units import Mib

from . import exclusive_storage, pools
from .disk_names import check_disk_name

KEYS = frozenset(
    {"size", "mode", "name", "adopt", "epoch", "spindles", "dev_type", "pool"}
)
"""What Ganeti mixes with the parameters of a template, in the description of a disk."""
MODES = ("rw", "ro")
LAST_EPOCH = 1 << 62
"""More than there will be attachments: a script's arithmetic takes it."""
LARGEST_DISK = Mib(16 * 1024 * 1024 * 1024)
"""16 PiB: more is a slip of the hand."""


class DiskSpec(Struct, frozen=True, kw_only=True, dict=True):
    """A disk as somebody wants it.

    Attributes
    ----------
    template
        Name of the disk template.
    size
        In MiB; None when it comes from what is adopted.
    adopt
        A volume that exists.
    reuse
        Whether the volume exists, and the provider finds it by the disk's name or its
        parameters: Ganeti's ``reuse_data=True``.
    epoch
        That an adopted disk starts with, for its storage may have seen others.
    params
        Parameters of the template or the provider, `provider` and `access` included.
    force
        Whether parameters that the provider does not list are accepted.
    folder
        For image files: a directory below the cluster's, relative; empty for none.
    pool
        The storage pool that it is made in; None for none.
    spindles
        How many physical volumes it has for itself; None without exclusive storage.
    """

    template: str
    size: Mib | None = None
    mode: str = "rw"
    name: str | None = None
    adopt: str | None = None
    reuse: bool = False
    epoch: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    force: bool = False
    folder: str = ""
    tags: tuple[str, ...] = ()
    pool: StoragePool | None = None
    spindles: int | None = None

    @cached_property
    def kind(self) -> type[Template]:
        """The template."""
        return template_named(self.template)

    @cached_property
    def mirrored(self) -> bool:
        """Whether it has two copies, on two nodes."""
        return self.kind.capabilities.mirror is Mirror.INTERNAL

    @cached_property
    def roams(self) -> bool:
        """Whether every node of a group reaches it."""
        return self.kind.capabilities.reach is Reach.GROUP

    @cached_property
    def adopts(self) -> bool:
        """Whether its volume is there, and not made for it."""
        return bool(self.adopt) or self.reuse

    @cached_property
    def driver(self) -> str:
        """What makes it: its provider, or else its template."""
        return str(self.params.get("provider") or self.template)

    @cached_property
    def at_path(self) -> bool:
        """Whether it adopts what nodes see at a path, before it is attached."""
        return bool(self.adopt) and not self.kind.capabilities.provider


@dataclass(slots=True)
class DiskWords:
    """The words of a request for one disk.

    What they say depends on nothing but the storage pool that they name. So they are
    read once, and again only when the pool was changed.

    Attributes
    ----------
    given
        ``pool`` (name or uuid), ``size``, ``mode``, ``name``, ``adopt``, ``epoch``,
        ``spindles``.
    template
        Its name; None if the storage pool says it.
    params
        Those of the template or the provider; None is as if it were not given.
    own
        Fields of the :class:`DiskSpec` that need no reading.
    """

    given: Mapping[str, Any]
    template: object
    params: Mapping[str, Any]
    own: Mapping[str, Any] = dataclass_field(default_factory=dict)
    _read: DiskSpec | None = dataclass_field(default=None, init=False)

    def read(self, config: Config) -> DiskSpec:
        """Return the disk that is wanted.

        Raises
        ------
        BadInput
            If there is no template, a value is off, or the pool is of another kind.
        NotFound
            If there is no such storage pool.
        """
        named = self.given.get("pool")
        pool = config.pool(str(named)) if named else None
        if self._read is None or self._read.pool is not pool:
            found = _specified(pool, self.given, self.template, self.params)
            self._read = replace(found, **self.own)
        return self._read


def mixed(
    given: Mapping[str, Any],
    default: str | None = None,
    own: Mapping[str, Any] | None = None,
) -> DiskWords:
    """Return the words of ``{size: 1024, provider: nas, …}``.

    The disk is of the template `default`, where they name neither one nor a storage
    pool.
    """
    template = given.get("dev_type") or (None if given.get("pool") else default)
    params = {key: value for key, value in given.items() if key not in KEYS}
    return DiskWords(given, template, params, own or {})


def _specified(
    pool: StoragePool | None,
    given: Mapping[str, Any],
    template: object,
    params: Mapping[str, Any],
) -> DiskSpec:
    if pool:
        template = pools.chosen_template(pool, template)
    if not template and params.get("provider"):
        template = PROVIDED
    if not template:
        raise BadInput(
            "the disk names no template",
            hint="gnt-disk: -t sharedfile, -t ext -p NAME, or --pool NAME; --disk: "
            "dev_type=file, dev_type=ext,provider=NAME, or pool=NAME",
        )
    own = {key: value for key, value in params.items() if value is not None}
    adopt, kind = given.get("adopt"), template_named(str(template))
    if adopt:
        adopt = kind.adoptable(str(adopt))
    reuse = kind.capabilities.provider and _reused(own)
    if reuse:  # whether the provider is told, its list of parameters says
        own = unused(own)
    return DiskSpec(
        template=str(template),
        size=checked_size(given.get("size")),
        mode=checked_mode(given.get("mode", "rw")),
        name=checked_name(given.get("name")),
        adopt=adopt or None,
        reuse=reuse,
        epoch=checked_epoch(given.get("epoch"), adopts=bool(adopt) or reuse),
        spindles=exclusive_storage.checked_spindles(given.get("spindles")),
        params=pools.completed(pool, own) if pool else own,
        pool=pool,
    )


def _reused(params: Mapping[str, Any]) -> bool:
    """Whether parameters say that the volume is there; raise `BadInput` for neither."""
    for name, value in params.items():
        if name.lower() == REUSE:
            flag(name, value)
    return reuses(params)


def unused(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without the one that says whether the volume is there."""
    return {name: one for name, one in params.items() if name.lower() != REUSE}


def anew(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a disk for another one, whose volume is made for it."""
    return unused(params) if reuses(params) else params


def checked_epoch(value: object, *, adopts: bool) -> int:
    """Return the epoch that an adopted disk starts with; 0 where none is said.

    Raises
    ------
    BadInput
        If it is no epoch, or the disk is a new one, whose storage has seen none.
    """
    if value is None or value == 0:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadInput(f"an epoch is a whole number from 0 on, not '{value}'")
    if value > LAST_EPOCH:
        raise BadInput(f"an epoch is at most {LAST_EPOCH}, not {value}")
    if not adopts:
        raise BadInput("a new disk starts with epoch 0: only an adopted one has others")
    return value


def named_params(params: Mapping[str, Any], **fields: str | None) -> dict[str, Any]:
    """Return the parameters of a request, some of which may be fields of it, too.

    Raises
    ------
    BadInput
        If a field says something else.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    for name in given.keys() & params.keys():
        if params[name] != given[name]:
            raise BadInput(
                f"the disk's {name} is given twice: '{given[name]}' and "
                f"'{params[name]}'"
            )
    return {**params, **given}


def shared_by(disks: Collection[Disk]) -> dict[str, Any]:
    """Return template, provider and storage pool that disks share; empty without any.

    A new disk of their instance takes them, where its description names none.
    """
    templates = {disk.dev_type for disk in disks}
    if len(templates) != 1:
        return {}
    given = {disk.params.get("provider") for disk in disks} - {None}
    shared = {"provider": given.pop()} if len(given) == 1 else {}
    places = {disk.pool for disk in disks}
    if len(places) == 1 and None not in places:
        shared["pool"] = places.pop()
    return {"dev_type": templates.pop(), **shared}


def checked_size(value: object) -> Mib | None:
    """Return a size in MiB, or raise `BadInput` if no disk can have it."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"a disk's size is a whole number of MiB, not '{value}'")
    if not 0 < value <= LARGEST_DISK:
        raise BadInput(f"a disk has between 1 and {LARGEST_DISK} MiB, not {value}")
    return Mib(value)


def checked_mode(value: object) -> str:
    """Return a mode, or raise `BadInput` if it is none of :data:`MODES`."""
    if value not in MODES:
        raise BadInput(f"a disk's mode is rw or ro, not '{value}'")
    return str(value)


def checked_name(value: object) -> str | None:
    """Return a name; None for none, in any of its spellings."""
    if value is None or value == "none":
        return None
    return check_disk_name(str(value))
