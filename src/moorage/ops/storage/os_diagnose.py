# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-os list`` and ``diagnose``: the operating systems that can be installed."""

from collections.abc import Callable, Sequence
from typing import Any

from moorage.jobs import View
from moorage.model import Os, nice
from moorage.model.caller import Role
from moorage.ops.asking.node_tasks import oses_on
from moorage.protocol import ListSystems
from moorage.storage.provider import common_parameters

from . import diagnosis

COLUMNS = (
    *("name", "valid", "variants", "parameters", "node_status"),
    *("api_versions", "hidden", "blacklisted"),
)


def _shown(one: Os) -> diagnosis.Entry:
    variants = list(one.variants)
    return [one.path, one.valid, one.problem, variants, diagnosis.pairs(one.parameters)]


def common_variants(found: Sequence[Os]) -> list[str]:
    """Return the variants that every one of `found` has, in nice order."""
    sets = [set(one.variants) for one in found]
    return sorted(set.intersection(*sets), key=nice) if sets else []


class OsDiagnose(diagnosis.Diagnosis, frozen=True, kw_only=True):
    """Say which operating systems there are, and where they are valid."""

    op_id = "OP_OS_DIAGNOSE"
    role = Role.READ

    columns = COLUMNS
    ask = ListSystems()

    output_fields: tuple[str, ...] = COLUMNS

    def result(self, view: View, _results: Sequence[Any]) -> diagnosis.Rows:
        """Return a row for each operating system."""
        found = diagnosis.collect(view, oses_on)

        def first(name: str) -> list[Os]:
            entries = found.entries(name).values()
            return [one[0] for one in entries if one and one[0].valid]

        def valid(name: str) -> bool:
            return not found.silent and len(first(name)) == len(found.found)

        columns: dict[str, Callable[[str], diagnosis.Cell]] = {
            "name": lambda name: name,
            "valid": valid,
            "variants": lambda name: common_variants(first(name)),
            "parameters": lambda name: diagnosis.pairs(common_parameters(first(name))),
            "node_status": lambda name: found.status(name, _shown),
            "api_versions": lambda name: sorted({one.api for one in first(name)}),
            "hidden": lambda name: name in view.config.cluster.hidden_os,
            "blacklisted": lambda name: name in view.config.cluster.blacklisted_os,
        }
        return diagnosis.rows(columns, self.output_fields, found.names(self.names))
