# SPDX-License-Identifier: BSD-2-Clause
"""New disks: from the words of a request to a disk that has an identity.

A disk's volume is named once, here, and keeps the name whatever happens to its owner,
its slot or its own name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from moorage.errors import BadInput, MoorageError, NotSupported, WrongState
from moorage.jobs import Lock, Question, View
from moorage.model import Config, Disk, Node, NodeGroup
from moorage.storage import Birth, Can, Reach, Template
from moorage.storage.provider import check_parameters, usable
from moorage.storage.templates import template_named
from moorage.units import Mib

from . import identity
from .calls import providers_on, settings
from .disk_names import check_disk_name, check_unknown, check_unused, hold_names
from .reach import check_provider, online, providers

KEYS = frozenset({"size", "mode", "name", "adopt", "spindles", "dev_type"})
"""What Ganeti mixes with the parameters of a template, in the description of a disk."""
MODES = ("rw", "ro")
LARGEST = Mib(16 * 1024 * 1024 * 1024)
"""16 PiB: more is a slip of the hand."""


class Wish(Struct, frozen=True, kw_only=True):
    """A disk as somebody wants it.

    Attributes
    ----------
    template
        Name of the disk template.
    size
        In MiB; None when it comes from the device that is adopted.
    adopt
        A volume that exists.
    params
        Parameters of the template or the provider, `provider` and `access` included.
    force
        Whether parameters that the provider does not list are accepted.
    folder
        For image files: a directory below the cluster's, relative; empty for none.
    """

    template: str
    size: Mib | None = None
    mode: str = "rw"
    name: str | None = None
    adopt: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    force: bool = False
    folder: str = ""
    tags: tuple[str, ...] = ()

    @property
    def kind(self) -> type[Template]:
        """The template."""
        return template_named(self.template)


def wish(given: Mapping[str, Any], default: str | None = None) -> Wish:
    """Return the disk that ``{size: 1024, provider: nas, …}`` describes.

    Parameters
    ----------
    default
        The template of a disk that names none.

    Raises
    ------
    BadInput
        If there is no template, or a value is off.
    """
    template = given.get("dev_type") or default
    if not template:
        raise BadInput(
            "the disk names no template",
            hint="say with the disk: dev_type=file, or dev_type=ext,provider=NAME",
        )
    if given.get("spindles") is not None:
        raise BadInput("disks have spindles with exclusive storage only: leave it out")
    params = {key: value for key, value in given.items() if key not in KEYS}
    return Wish(
        template=str(template),
        size=checked_size(given.get("size")),
        mode=checked_mode(given.get("mode", "rw")),
        name=checked_name(given.get("name")),
        adopt=checked_volume(str(template), given.get("adopt")),
        params={key: value for key, value in params.items() if value is not None},
    )


def shared_by(disks: Iterable[Disk]) -> dict[str, Any]:
    """Return the template and the provider that disks share; empty without any.

    A new disk of their instance takes them, where its description names none.
    """
    templates = {disk.dev_type for disk in disks}
    if len(templates) != 1:
        return {}
    given = {disk.params.get("provider") for disk in disks} - {None}
    shared = {"provider": given.pop()} if len(given) == 1 else {}
    return {"dev_type": templates.pop(), **shared}


def checked_size(value: object) -> Mib | None:
    """Return a size in MiB, or raise `BadInput` if no disk can have it."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"a disk's size is a whole number of MiB, not '{value}'")
    if not 0 < value <= LARGEST:
        raise BadInput(f"a disk has between 1 and {LARGEST} MiB, not {value}")
    return Mib(value)


def checked_mode(value: object) -> str:
    """Return a mode, or raise `BadInput` if it is none of :data:`MODES`."""
    if value not in MODES:
        raise BadInput(f"a disk's mode is rw or ro, not '{value}'")
    return str(value)


def checked_volume(template: str, value: object) -> str | None:
    """Return a volume to adopt, as a template names it; None for none."""
    return template_named(template).adoptable(str(value)) if value else None


def checked_name(value: object) -> str | None:
    """Return a name; None for none, in any of its spellings."""
    if value is None or value == "none":
        return None
    return check_disk_name(str(value))


def hold(wishes: Iterable[Wish]) -> Iterator[Lock]:
    """Hold what two jobs must not give to two disks: names, and adopted devices."""
    for wanted in wishes:
        yield from hold_names(wanted.name)
        if wanted.adopt:
            yield identity.ADOPTION


def ask(config: Config, wanted: Wish, group: NodeGroup) -> Iterator[Question]:
    """Ask the nodes of a group what :func:`check` must know."""
    capabilities = wanted.kind.capabilities
    nodes = online(config, group)
    if wanted.adopt:
        yield from identity.ask(config, nodes, wanted.adopt)
    for node in nodes:
        if capabilities.provider:
            yield providers_on(node.uuid)


def bear(
    view: View, wanted: Wish, node: Node, *, index: int = 0, instance: str = ""
) -> Disk:
    """Return the new disk, with the identity that it keeps for life.

    Parameters
    ----------
    node
        Where it is made, or where its instance runs.
    index, instance
        The slot and the instance it is made for; 0 and empty for nobody.
    """
    cluster, kind = view.config.cluster, wanted.kind
    adopted = {"adopt": wanted.adopt} if wanted.adopt else {}
    born = Birth(
        unique=view.fresh(),
        index=index,
        instance=instance,
        folder=wanted.folder,
        settings=settings(cluster, wanted.template),
        params=wanted.params | adopted,
    )
    local = kind.capabilities.reach is not Reach.GROUP
    return Disk(
        uuid=view.fresh(),
        dev_type=wanted.template,
        logical_id=kind.logical_id(born),
        size=born_size(view, wanted, node),
        mode=wanted.mode,
        name=wanted.name,
        nodes=(node.uuid,) if local else (),
        params=kind.parameters(_inherited(view, wanted, node) | wanted.params),
        group=node.group,
        last_node=node.uuid,
        identity=_identity(view, wanted, node),
        ctime=view.now,
        mtime=view.now,
        tags=wanted.tags,
    )


def _inherited(view: View, wanted: Wish, node: Node) -> dict[str, Any]:
    """Return the template's parameters of the cluster and of the node's group."""
    group = view.config.group(node.group)
    cluster = view.config.cluster.diskparams.get(wanted.template, {})
    return cluster | group.diskparams.get(wanted.template, {})


def _identity(view: View, wanted: Wish, node: Node) -> str | None:
    return identity.device(view, node, wanted.adopt).identity if wanted.adopt else None


def born_size(view: View, wanted: Wish, node: Node) -> Mib:
    """Return how large the new disk is: as wished, or as the adopted device is."""
    if wanted.adopt:
        return identity.device(view, node, wanted.adopt).size
    if wanted.size is None:
        raise BadInput("the disk has no size", hint="add size=10G")
    return wanted.size


def check(view: View, wanted: Wish, node: Node) -> None:
    """Raise `Refused` unless the disk can be made for use on `node` and its group."""
    kind = wanted.kind
    enabled = view.config.cluster.enabled_disk_templates
    if enabled and wanted.template not in enabled:
        raise WrongState(
            f"disk template '{wanted.template}' is not enabled in this cluster",
            hint="gnt-cluster modify --enabled-disk-templates=…",
            enabled=list(enabled),
        )
    if wanted.adopt and Can.ADOPT not in kind.capabilities.can:
        raise NotSupported(f"disk template '{wanted.template}' adopts no volumes")
    if not wanted.adopt and Can.CREATE not in kind.capabilities.can:
        raise BadInput(
            f"disk template '{wanted.template}' makes no volumes: it adopts devices",
            hint="add adopt=/dev/disk/…",
        )
    if wanted.name:
        check_unused(view.config, wanted.name)
        if kind.capabilities.provider:
            check_unknown(view.config, wanted.name)
    disk = bear(view, wanted, node)
    if kind.capabilities.provider:
        check_provider(view, disk, node)
        provider = usable(providers(view, node))[str(disk.logical_id[0])]
        check_parameters(wanted.params, provider, force=wanted.force)
    if wanted.adopt:
        nodes = online(view.config, view.config.group(node.group))
        identity.check_adoption(view, wanted.adopt, node, nodes)


def offers(view: View, wanted: Wish, node: Node) -> bool:
    """Whether a node answered, and has the provider that a new disk needs."""
    if not wanted.kind.capabilities.provider:
        return True
    try:
        found = usable(providers(view, node)).get(str(wanted.params.get("provider")))
    except MoorageError:
        return False
    return found is not None and found.valid


def warnings(view: View, wanted: Wish, worker: Node) -> Iterator[str]:
    """Say which nodes of the group will not reach the new disk.

    They do not stop the others: a node that is new, or drained, may get its provider
    later. The planner sends nobody there before.
    """
    if not wanted.kind.capabilities.provider:
        return
    disk, group = bear(view, wanted, worker), view.config.group(worker.group)
    for node in _telling(view, group, worker, providers_on):
        try:
            check_provider(view, disk, node)
        except MoorageError as error:
            yield f"{error.message}: the disk cannot be used there"


def check_distinct(wishes: list[Wish]) -> None:
    """Raise `BadInput` if two disks of one request would be the same."""
    adopted = [wanted.adopt for wanted in wishes if wanted.adopt]
    twice = sorted({path for path in adopted if adopted.count(path) > 1})
    if twice:
        raise BadInput(f"device {twice[0]} is named twice")
    names = [wanted.name for wanted in wishes if wanted.name]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"two disks would be named '{twice[0]}'")


def _telling(
    view: View, group: NodeGroup, worker: Node, ask_node: Callable[[str], Question]
) -> list[Node]:
    """Return the nodes of a group that must be able to use a new disk.

    One that gives no answer does not hold the others up, unless it is to do the work.
    """
    return [
        node
        for node in online(view.config, group)
        if node == worker or view.reached(ask_node(node.uuid))
    ]
