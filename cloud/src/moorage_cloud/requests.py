# SPDX-License-Identifier: BSD-2-Clause
"""What a cluster is asked for: data, kept in the outbox until it is answered."""

from typing import Any

from msgspec import Struct, convert, field, to_builtins


class Request(Struct, frozen=True, kw_only=True, tag_field="act"):
    """One thing to do with a volume.

    Attributes
    ----------
    name
        The volume's name on every cluster (``VOL_CNAME``); it never changes.
    instance
        The instance to do it with; None for a disk that no instance has.
    """

    name: str
    instance: str | None = None


class Take(Request, frozen=True, kw_only=True, tag="take"):
    """Have the volume as a disk.

    Attributes
    ----------
    size
        MiB.
    template, provider, pool
        How it is stored; of `provider` and `pool` at most one is not empty.
    params
        Parameters of the provider.
    adopt
        Whether its data is there already, and is taken as it is.
    epoch
        That an adopted disk starts with; each attachment's are above those of all
        earlier ones, on whatever cluster.
    read_only
        Whether guests may only read.
    """

    size: int
    template: str
    provider: str = ""
    pool: str = ""
    params: dict[str, str] = field(default_factory=dict)
    adopt: bool
    epoch: int
    read_only: bool = False


class Leave(Request, frozen=True, kw_only=True, tag="leave"):
    """Have the disk no more; its data stays where it is."""


class Grow(Request, frozen=True, kw_only=True, tag="grow"):
    """Make it larger.

    Attributes
    ----------
    size
        MiB that it is to have.
    """

    size: int


class Destroy(Request, frozen=True, kw_only=True, tag="destroy"):
    """Have neither the disk nor its data."""


class Snapshot(Request, frozen=True, kw_only=True, tag="snapshot"):
    """Copy it in time.

    Attributes
    ----------
    snapshot
        The name of the copy.
    """

    snapshot: str


class OfServer(Struct, frozen=True, kw_only=True, tag_field="act"):
    """One thing to do with an instance.

    Attributes
    ----------
    instance
        Its name on the cluster.
    """

    instance: str


class Build(OfServer, frozen=True, kw_only=True, tag="build"):
    """Make an instance without disks or network, and leave it stopped."""


class StartUp(OfServer, frozen=True, kw_only=True, tag="start"):
    """Let it run."""


class ShutDown(OfServer, frozen=True, kw_only=True, tag="stop"):
    """Let it stop."""


class Reboot(OfServer, frozen=True, kw_only=True, tag="reboot"):
    """Let it start anew.

    Attributes
    ----------
    hard
        Whether it is stopped and started; else its machine is reset.
    """

    hard: bool


class Remove(OfServer, frozen=True, kw_only=True, tag="remove"):
    """Have it no more, nor the disks that it has then."""


class Rename(OfServer, frozen=True, kw_only=True, tag="rename"):
    """Call its disks otherwise; to its storage, a volume stays what it was.

    Attributes
    ----------
    names
        The new ones, by name or slot.
    dry_run
        Whether the cluster is only to say whether it would.
    """

    names: dict[str, str]
    dry_run: bool = False


VolumeRequest = Take | Leave | Grow | Destroy | Snapshot
ServerRequest = Build | StartUp | ShutDown | Reboot | Remove | Rename
AnyRequest = VolumeRequest | ServerRequest

RUNNING = frozenset({"running", "paused"})
"""What a cluster says of an instance that runs."""
STOPPED = frozenset({"ADMIN_down", "ADMIN_offline", "USER_down"})
"""What it says of one that is meant not to run, and does not."""


def to_json(request: AnyRequest) -> Any:  # noqa: ANN401 - what a JSON column holds
    """Return a request as a JSON column keeps it.

    >>> to_json(Leave(name="snf-vol-7", instance="snf-1"))
    {'act': 'leave', 'name': 'snf-vol-7', 'instance': 'snf-1'}
    """
    return to_builtins(request)


def from_json(kept: object) -> AnyRequest:
    """Return what :func:`to_json` made."""
    found: AnyRequest = convert(kept, AnyRequest)
    return found


def disk_of(request: VolumeRequest) -> str:
    """Return the name of the disk that tells."""
    return request.snapshot if isinstance(request, Snapshot) else request.name


def was_done(
    request: VolumeRequest,
    *,
    there: bool,
    instance: str | None,
    size: int,
    epoch: int = 0,
) -> bool:
    """Whether a cluster has done what it was asked for.

    A disk with a lower epoch than was asked for was there before: its cluster was cut
    off meanwhile, and its guest knows old data. One that is nobody's has no guest.

    Parameters
    ----------
    there
        Whether it has the disk that tells.
    instance
        Whose that is; None for nobody's.
    size
        MiB that it has.
    epoch
        That it has.

    >>> was_done(Leave(name="v"), there=False, instance=None, size=0)
    True
    >>> was_done(Grow(name="v", size=2048), there=True, instance="a", size=1024)
    False
    """
    match request:
        case Take():
            here = there and instance == request.instance
            old = request.adopt and epoch < request.epoch
            return here and not (old and instance)
        case Leave() | Destroy():
            return not there
        case Grow():
            return there and size >= request.size
        case Snapshot():
            return there


def was_done_with_server(request: ServerRequest, status: str | None) -> bool:
    """Whether a cluster has done what it was asked for with an instance.

    Parameters
    ----------
    status
        What it says of it; None if it has none of the name.

    >>> was_done_with_server(Remove(instance="snf-1"), None)
    True
    """
    match request:
        case Build() | Rename():
            return False  # what has that name may be somebody else's
        case Reboot():
            return False  # it runs before as it does afterwards
        case StartUp():
            return status in RUNNING
        case ShutDown():
            return status in STOPPED
        case Remove():
            return status is None
