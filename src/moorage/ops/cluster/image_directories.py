# SPDX-License-Identifier: BSD-2-Clause
"""The directories for image files: can the cluster be told to keep disks there."""

from collections.abc import Iterator, Mapping, Sequence

from moorage.errors import BadInput, WrongState
from moorage.jobs import Ask, View
from moorage.model import Cluster, Config, Disk, Node, NodeFacts, Place
from moorage.ops.volumes.directories import SETTINGS, setting_of
from moorage.ops.volumes.disk_access import template
from moorage.ops.volumes.units import names_its_place
from moorage.protocol import GetFacts
from moorage.storage import TEMPLATES
from moorage.storage.validation import check_image_directory

from .checks_storage import is_forbidden, listed


def tidy(wanted: str) -> str:
    """Return a directory in its shortest form, where only slashes are too many."""
    return "/" + wanted.strip("/") if wanted.startswith("/") else wanted


def asked_on(config: Config, node: Node, given: Mapping[str, str]) -> Ask[NodeFacts]:
    """Ask a node for directories that are to be set, and for those they replace."""
    new = {setting: tidy(given[setting]) for setting in given}
    old = {setting: str(getattr(config.cluster, setting)) for setting in given}
    return Ask(node.uuid, asking(new, old))


def asking(*directories: Mapping[str, str]) -> GetFacts:
    """Return what asks for the room of templates in their directories, by setting."""
    where = [
        Place(template=name, settings=((setting, path),))
        for each in directories
        for setting, path in each.items()
        for name, kind in TEMPLATES.items()
        if path and setting == setting_of(kind)
    ]
    return GetFacts(brief=True, places=tuple(dict.fromkeys(where)))


def check(view: View, nodes: Sequence[Node], given: Mapping[str, str]) -> None:
    """Raise `Refused` unless directories can be set.

    Every node that answers must have them. A template finds its files below its
    directory only, so a disk outside of the new one would be lost, unless it is lost
    already: no node has the old one.
    """
    told = list(_told(view, nodes, given))
    for setting, wanted in given.items():
        path = tidy(wanted)
        _check_form(setting, path)
        check_image_directory(setting, path)
        old = str(getattr(view.config.cluster, setting))
        if not _is_lost(told, old, path):
            _check_left(view.config, setting, path)
        for node, facts in told:
            if path:
                _check_there(node, facts, setting, path)


def of(cluster: Cluster) -> dict[str, str]:
    """Return the directories that a cluster has set, by setting."""
    given = {setting: str(getattr(cluster, setting)) for setting in SETTINGS}
    return {setting: path for setting, path in given.items() if path}


def check_there(node: Node, facts: NodeFacts, wanted: Mapping[str, str]) -> None:
    """Raise `Refused` unless a node has directories, and allows image files there."""
    for setting, path in wanted.items():
        _check_there(node, facts, setting, path)


def _told(
    view: View, nodes: Sequence[Node], given: Mapping[str, str]
) -> Iterator[tuple[Node, NodeFacts]]:
    for node in nodes:
        said = view.told(asked_on(view.config, node, given))
        if said:  # of a silent one verify tells, when it is back
            yield node, said


def _check_form(setting: str, path: str) -> None:
    if path and any(part in ("", ".", "..") for part in path.split("/")[1:]):
        raise BadInput(
            f"'{path}' is not an absolute path in its shortest form",
            hint=f"gnt-cluster modify --{setting.replace('_', '-')}=/srv/moorage",
        )


def _is_lost(told: list[tuple[Node, NodeFacts]], old: str, new: str) -> bool:
    """Whether nodes were asked for both directories, and have the new one alone."""
    seen = {unit.key for _, facts in told for unit in facts.units}
    return new in seen and old not in seen


def _check_left(config: Config, setting: str, path: str) -> None:
    for disk in config.all(Disk):
        if names_its_place(disk):
            continue
        inside = path and disk.volume.startswith(f"{path.rstrip('/')}/")
        if setting_of(template(disk)) == setting and not inside:
            raise WrongState(
                f"disk {disk.label} is the file {disk.volume}: with {setting} "
                f"'{path}' it could not be found",
                hint=f"gnt-disk info {disk.uuid}",
                disk=disk.uuid,
            )


def _check_there(node: Node, facts: NodeFacts, setting: str, path: str) -> None:
    if path not in {unit.key for unit in facts.units}:
        raise WrongState(
            f"node {node.name} has no directory {path}",
            hint=f"mount it on {node.name}, then: "
            f"gnt-cluster modify --{setting.replace('_', '-')}={path}",
            node=node.name,
        )
    if is_forbidden(facts, path):
        told, hint = listed(node, facts)
        raise WrongState(
            f"node {node.name} does not allow disks in {path}: {told}",
            hint=hint,
            node=node.name,
        )
