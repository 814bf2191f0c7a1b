# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-os list`` and ``diagnose``: the operating systems that can be installed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.jobs import View
from moorage.model import Os, nice
from moorage.model.caller import Role
from moorage.model.values import Value
from moorage.ops.asking.node_tasks import oses_on
from moorage.protocol import ListSystems
from moorage.storage.provider import common_parameters

from . import diagnosis

COLUMNS = (
    *("name", "valid", "variants", "parameters", "node_status", "api_versions"),
    *("hidden", "blacklisted", "os_hvp", "osparams", "trusted"),
)
_TRUSTED = True
"""Every definition that there is: no script is run inside of a guest."""


_UNKNOWN: diagnosis.Entry = [[], [], [], _TRUSTED]
"""What stands for variants, parameters, versions of the interface, and trust."""


def _shown(one: Os) -> diagnosis.Entry:
    told, given = list(one.variants), diagnosis.pairs(one.parameters)
    return [one.path, one.valid, one.problem, told, given, [one.api], _TRUSTED]


def _of(
    given: Mapping[str, Mapping[str, Value]], name: str
) -> dict[str, dict[str, Value]]:
    """Return what is set for an OS, below its name; nothing if nobody set it."""
    return {name: dict(given[name])} if name in given else {}


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
            "node_status": lambda name: found.status(name, _shown, _UNKNOWN),
            "api_versions": lambda name: sorted({one.api for one in first(name)}),
            "hidden": lambda name: name in view.config.cluster.hidden_os,
            "blacklisted": lambda name: name in view.config.cluster.blacklisted_os,
            "os_hvp": lambda name: _of(view.config.cluster.os_hvp, name),
            "osparams": lambda name: _of(view.config.cluster.osparams, name),
            "trusted": lambda _name: _TRUSTED,
        }
        return diagnosis.rows(columns, self.output_fields, found.names(self.names))
