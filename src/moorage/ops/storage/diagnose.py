# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage diagnose``: disk templates and storage pools, by node and by group.

A template declares what it needs; each node says what of it is there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.errors import MoorageError
from moorage.jobs import Ask, Question, View
from moorage.model import Config, Examined, Node, NodeGroup, Place, StoragePool
from moorage.model.caller import Role
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.volumes.directories import enabled, place, unit_at, usual_place
from moorage.protocol import ExamineStorage
from moorage.storage import TEMPLATES, template_named
from moorage.storage.provider import common_parameters

from .diagnosis import Cell, Diagnosis, Entry, Rows, collect, pairs

COLUMNS = (
    "template",
    "pool",
    "driver",
    "node_status",
    "nodegroup_status",
    "parameters",
)
_PROVIDER = "provider"
"""The parameter that a pool says for its disks."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at: the usual place of a template, or a storage pool."""

    template: str
    pool: StoragePool | None = None

    def at(self, config: Config, group: NodeGroup) -> Place | None:
        """Return where its disks are in a group; None where there can be none."""
        if self.pool is None:
            return usual_place(config, group, self.template)
        connected = group.uuid in self.pool.groups
        return place(config, group, self.pool) if connected else None


def subjects(config: Config) -> list[Subject]:
    """Return the enabled templates that need no provider, then all storage pools."""
    names = enabled(config)
    own = [name for name in names if not TEMPLATES[name].capabilities.provider]
    pools = [Subject(pool.template, pool) for pool in config.named(StoragePool)]
    return [*(Subject(name) for name in own), *pools]


def examined_on(config: Config, node: Node) -> Ask[list[Examined]]:
    """Ask a node for every place that its group has."""
    group = config.group(node.group)
    found = (subject.at(config, group) for subject in subjects(config))
    places = dict.fromkeys(one for one in found if one)
    return Ask(node.uuid, ExamineStorage(places=tuple(places)))


class StorageDiagnose(Diagnosis, frozen=True, kw_only=True):
    """Say which templates and storage pools work, and how much room they have."""

    op_id = "OP_STORAGE_DIAGNOSE"
    role = Role.READ

    columns = COLUMNS

    output_fields: tuple[str, ...] = COLUMNS

    def questions(self, view: View) -> Iterator[Question]:
        """Ask every node that is online and may run instances."""
        for node in view.config.hosts():
            yield examined_on(view.config, node)
            yield providers_on(node.uuid)

    def result(self, view: View, _results: Sequence[Any]) -> Rows:
        """Return a row for each template and each pool."""
        rows = [_row(view, one) for one in subjects(view.config) if self._wants(one)]
        return [[row[column] for column in self.output_fields] for row in rows]

    def _wants(self, subject: Subject) -> bool:
        name = subject.pool.name if subject.pool else subject.template
        return not self.names or name in self.names


def _row(view: View, subject: Subject) -> dict[str, Cell]:
    pool = subject.pool
    status = {
        node.name: found
        for node in view.config.hosts()
        if (found := _status(view, subject, node)) is not None
    }
    return {
        "template": subject.template,
        "pool": pool.name if pool else None,
        "driver": pool.driver if pool else subject.template,
        "node_status": status,
        "nodegroup_status": _groups(view.config, subject, status),
        "parameters": _parameters(view, subject),
    }


def _parameters(view: View, subject: Subject) -> list[list[str]]:
    """Return what its disks can be given: of a pool of a provider, the provider's."""
    facts = template_named(subject.template).capabilities.facts
    own = [[one.name, one.meaning] for one in facts.parameters]
    provider = subject.pool.provider if subject.pool else None
    if provider is None:
        return own
    found = collect(view, providers_on).entries(provider).values()
    told = common_parameters(entries[0] for entries in found if entries)
    return pairs(told) + [one for one in own if one[0] not in (_PROVIDER, *told)]


def _status(view: View, subject: Subject, node: Node) -> Entry | None:
    """Return what a node said: where, whether it works, why not, total and free MiB."""
    where = subject.at(view.config, view.config.group(node.group))
    if where is None:
        return None
    try:
        told = view.answer(examined_on(view.config, node)) or []
    except MoorageError as error:
        return ["", False, f"no answer: {error.message}", None, None]
    found = next((one for one in told if one.place == where), Examined(place=where))
    _, key = unit_at(where)
    mine = [unit for unit in found.units if unit.key == key]
    room = [mine[0].total, mine[0].free] if mine else [None, None]
    return [key, not found.problem, found.problem, *room]


def _groups(
    config: Config, subject: Subject, status: dict[str, Entry]
) -> dict[str, bool]:
    """Return whether it works on every node of each group where its disks can be."""
    found = {}
    for group in config.named(NodeGroup):
        told = [status[n.name] for n in config.nodes_in(group) if n.name in status]
        if subject.at(config, group):
            found[group.name] = bool(told) and all(valid for _, valid, *_ in told)
    return found
