# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage diagnose``: the ExtStorage providers, by node and by node group."""

from collections.abc import Callable, Sequence
from typing import Any

from moorage.jobs import View
from moorage.model import NodeGroup, Provider
from moorage.model.caller import Role
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.volumes.disk_access import online
from moorage.protocol import ListProviders
from moorage.storage.provider import common_parameters, usable, valid_for_group

from . import diagnosis
from .diagnosis import Answers

COLUMNS = ("name", "node_status", "nodegroup_status", "parameters")


def _shown(one: Provider) -> diagnosis.Entry:
    return [one.path, one.valid, one.problem, diagnosis.pairs(one.parameters)]


def valid_in(view: View, group: NodeGroup, name: str, found: Answers[Provider]) -> bool:
    """Whether every online node of a group proved that it has a valid provider.

    A node that gave no answer proved nothing.
    """
    nodes = online(view.config, group)
    told = {node.name: usable(found.found.get(node.name, ())) for node in nodes}
    return valid_for_group(told, name)


class ExtStorageDiagnose(diagnosis.Diagnosis, frozen=True, kw_only=True):
    """Say which providers there are, and where they are valid."""

    op_id = "OP_EXT_STORAGE_DIAGNOSE"
    role = Role.READ

    columns = COLUMNS
    ask = ListProviders()

    output_fields: tuple[str, ...] = COLUMNS

    def result(self, view: View, _results: Sequence[Any]) -> diagnosis.Rows:
        """Return a row for each provider."""
        found = diagnosis.collect(view, providers_on)
        groups = view.config.named(NodeGroup)

        def by_group(name: str) -> dict[str, bool]:
            return {one.name: valid_in(view, one, name, found) for one in groups}

        def parameters(name: str) -> list[list[str]]:
            first = [entries[0] for entries in found.entries(name).values() if entries]
            return diagnosis.pairs(common_parameters(first))

        columns: dict[str, Callable[[str], diagnosis.Cell]] = {
            "name": lambda name: name,
            "node_status": lambda name: found.status(name, _shown, [[]]),
            "nodegroup_status": by_group,
            "parameters": parameters,
        }
        return diagnosis.rows(columns, self.output_fields, found.names(self.names))
