# SPDX-License-Identifier: BSD-2-Clause
"""Whether a disk that is wanted can be made, or taken over, where it is wanted."""

from collections.abc import Iterator

from moorage.errors import (
    BadInput,
    MoorageError,
    NotFound,
    NotSupported,
    WrongState,
)
from moorage.jobs import View
from moorage.model import Config, Disk, Node, Pair
from moorage.model.objects import REUSE
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.volumes import disk_spec, exclusive_storage, identity, pools
from moorage.ops.volumes.disk_access import check_provider, online, provider_on
from moorage.ops.volumes.disk_names import check_sole
from moorage.ops.volumes.disk_spec import device, new_disk
from moorage.ops.volumes.disk_words import DiskSpec
from moorage.storage import Can, Reach
from moorage.storage.provider import check_parameters, provider_called
from moorage.storage.templates import template_named

from . import placement

MOST_RATE = 1 << 20
"""MiB a second: more is no limit."""


def check(view: View, wanted: DiskSpec, node: Node, pair: Pair | None = None) -> None:
    """Raise `Refused` unless the disk can be made for use on `node` and its group.

    The `pair` keeps a mirrored one; None while it is not chosen yet.
    """
    check_wanted(view, wanted, node, pair)
    if pair or not wanted.mirrored:
        check_made(view, wanted, new_disk(view, wanted, node, pair=pair), node)


def check_wanted(
    view: View, wanted: DiskSpec, node: Node, pair: Pair | None = None
) -> None:
    """Raise `Refused` unless `node` and its group take such a disk."""
    group = view.config.group(node.group)
    if wanted.pool:
        pools.check_connected(view.config, wanted.pool, group)
    check_enabled(view.config, wanted.template)
    _check_able(wanted)
    if not wanted.adopts:
        facts = wanted.kind.capabilities.facts
        exclusive_storage.check(view.config, node, facts, wanted.spindles)
    for one in map(view.config.node, pair.nodes) if pair else [node]:
        check_groups(view, wanted, one)
    if pair or not wanted.mirrored:
        _check_seen(view, wanted, node)


def check_made(view: View, wanted: DiskSpec, disk: Disk, node: Node) -> None:
    """Raise `Refused` unless its storage makes the disk, or has what is adopted."""
    provided = wanted.kind.capabilities.provider
    provider = check_provider(view, disk, node) if provided else None
    if provider:
        check_parameters(wanted.params, provider, force=wanted.force)
    if wanted.name:
        check_sole(view.config, wanted.name, sole=disk.by_name)
    if wanted.adopts:
        _check_adopted(view, wanted, disk, node)


def check_groups(view: View, wanted: DiskSpec, node: Node) -> None:
    """Raise `Refused` unless a node has the volume groups of a disk that is made."""
    if wanted.kind.capabilities.facts.node_disk and not wanted.adopt:
        group = view.config.group(node.group)
        for unit in disk_spec.units(view.config, wanted, group):
            placement.check_there(view, node, unit)


def _check_adopted(view: View, wanted: DiskSpec, disk: Disk, node: Node) -> None:
    """Raise `Refused` unless what is adopted is there, and nobody's."""
    able, group = wanted.kind.capabilities, view.config.group(node.group)
    if Can.CREATE in able.can:
        identity.check_unowned(view.config, disk, node)
    if able.provider:
        return
    local = able.reach is not Reach.GROUP
    nodes = [node] if local else list(online(view.config, group))
    path = device(view.config, wanted, group)
    identity.check_adoption(view, path, node, nodes)


def _check_seen(view: View, wanted: DiskSpec, node: Node) -> None:
    """Raise `NotFound` if a provider tells which volumes there are, and it is none."""
    if not wanted.adopt or wanted.at_path:
        return
    if disk_spec.listed(view, wanted, node) == []:
        provider = wanted.params.get("provider")
        raise NotFound(
            f"ExtStorage provider '{provider}' has no volume '{wanted.adopt}' on node "
            f"{node.name}",
            hint=f"gnt-storage reconcile --provider {provider}",
        )


def check_new(wanted: DiskSpec) -> None:
    """Raise `BadInput` if a volume that is there would be filled, unless it is named.

    That data are to be kept, and others put in their place, cannot both be meant.
    """
    if wanted.reuse:
        raise BadInput(
            f"{REUSE}=True keeps what a volume holds, and this puts other data there",
            hint="leave it out; what is to be overwritten is named: --adopt NAME",
        )


def check_enabled(config: Config, template: str) -> None:
    """Raise `Refused` unless disks of a template may be made in this cluster."""
    template_named(template)
    enabled = config.cluster.enabled_disk_templates
    if enabled and template not in enabled:
        raise WrongState(
            f"disk template '{template}' is not enabled in this cluster",
            hint="gnt-cluster modify --enabled-disk-templates=…",
            enabled=list(enabled),
        )


def _check_able(wanted: DiskSpec) -> None:
    """Raise `Refused` if the template can neither make nor adopt what is wanted."""
    can = wanted.kind.capabilities.can
    if wanted.adopt and Can.ADOPT not in can:
        raise NotSupported(
            f"a new disk of template '{wanted.template}' adopts no volume",
            hint=how_to_adopt(wanted, wanted.adopt),
        )
    if not wanted.adopt and Can.CREATE not in can:
        raise BadInput(
            f"disk template '{wanted.template}' makes no volumes: it adopts devices",
            hint="add adopt=/dev/disk/…",
        )


def how_to_adopt(wanted: DiskSpec, volume: str) -> str:
    """Return the commands by which a volume becomes a disk of a template."""
    template, named = wanted.template, wanted.params.get("provider")
    can = wanted.kind.capabilities.can
    if Can.ADOPT in can:
        return f"gnt-disk add -t {template} --adopt {volume}"
    if Can.LIST in can:
        where = f"-t {template}" + (f" -p {named}" if named else "")
        return f"gnt-disk adopt {where} {volume} makes one to attach"
    made_of = wanted.kind.capabilities.facts.stored_as
    return f"gnt-disk adopt -t {made_of} {volume}; then: gnt-disk convert -t {template}"


def offers(view: View, wanted: DiskSpec, node: Node) -> bool:
    """Whether a node has what a new disk needs: its provider, its volume groups.

    Nor does it want spindles, or lack them, where that does not go with the node.
    """
    able = wanted.kind.capabilities
    try:
        if not wanted.adopt:
            exclusive_storage.check(view.config, node, able.facts, wanted.spindles)
        check_groups(view, wanted, node)
    except MoorageError:
        return False
    if not able.provider:
        return True
    told = view.told(providers_on(node.uuid)) or []
    found = provider_called(str(wanted.params.get("provider")), told)
    return found is not None and found.valid


def warnings(view: View, wanted: DiskSpec, worker: Node) -> Iterator[str]:
    """Say which nodes of the group will not reach the new disk.

    They do not stop the others: a node that is new, or drained, may get its provider
    later. The planner sends nobody there before.
    """
    if not wanted.kind.capabilities.provider:
        return
    name, group = wanted.driver, view.config.group(worker.group)
    for node in online(view.config, group):
        question = providers_on(node.uuid)
        if node != worker and not view.reached(question):
            continue  # one that gives no answer does not hold the others up
        try:
            provider_on(node, name, view.answer(question) or [])
        except MoorageError as error:
            yield f"{error.message}: the disk cannot be used there"


def check_distinct(wishes: list[DiskSpec]) -> None:
    """Raise `BadInput` if two disks of one request would be the same."""
    adopted = [_meant(wanted) for wanted in wishes if wanted.adopt]
    again = sorted({one for one in adopted if adopted.count(one) > 1})
    if again:
        provider, what = again[0]
        raise BadInput(f"{'volume' if provider else 'device'} {what} is named twice")
    names = [wanted.name for wanted in wishes if wanted.name]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"two disks would be named '{twice[0]}'")


def _meant(wanted: DiskSpec) -> tuple[str, str]:
    """Return provider and name of what is adopted; of a device, its path alone."""
    return str(wanted.params.get("provider") or ""), str(wanted.adopt)


def check_rate(rate: int) -> None:
    """Raise `BadInput` unless it is a limit in MiB a second, or 0 for none."""
    if not 0 <= rate <= MOST_RATE:
        raise BadInput(f"a rate is 1 to {MOST_RATE} MiB a second, not {rate}")
