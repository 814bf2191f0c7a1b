# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage certify``: a provider is held to its contract, on real nodes.

Each part of a check is a task, so a certification can be cancelled between two of them,
and whatever interrupts it, its volumes are taken back.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import convert, field

from moorage.errors import BadInput, NotFound, WrongState
from moorage.jobs import Lock, Operation, Question, Run, Task, View, once
from moorage.model import Node, Provider
from moorage.model.caller import Role
from moorage.model.kinds import Mebibytes
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.asking.silence import check_online
from moorage.ops.volumes import disk_words
from moorage.ops.volumes.disk_access import providers
from moorage.protocol import ClearProvider, DigestProvider, TryProvider
from moorage.storage.certify import (
    CHECKS,
    FAILS,
    MOOT,
    RUNS,
    Check,
    CheckResult,
    Report,
    Scripts,
)
from moorage.storage.provider import check_parameters, not_found, provider_called
from moorage.storage.templates import template_named
from moorage.units import Mib

_TEMPLATE = "ext"
_WORD = 12
"""Characters of a uuid that tell the volumes of a certification from all others."""


class ExtStorageCertify(Operation, frozen=True, kw_only=True):
    """Hold a provider to its contract, with volumes that it makes and removes.

    Attributes
    ----------
    provider
        Name of the ExtStorage provider.
    node
        Where it runs; the first node that has a valid provider, if none is named.
    second_node
        Another node, for the checks that take two; they are left out without one.
    params
        Parameters of the volumes.
    size
        Size of each volume.
    checks
        The only checks to make; all of them when empty.
    force_params
        Accept parameters that the provider does not list.
    """

    op_id = "OP_EXT_STORAGE_CERTIFY"
    role = Role.ROOT

    provider: str
    node: str | None = None
    second_node: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    size: Mebibytes = Mib(16)
    checks: tuple[str, ...] = ()
    force_params: bool = False

    def _candidates(self, view: View) -> Sequence[Node]:
        if self.node:
            return [view.config.node(self.node)]
        return view.config.hosts()

    def _asked(self, view: View) -> list[Node]:
        """Return every node that it may run on."""
        named = [view.config.node(self.second_node)] if self.second_node else []
        found = {node.uuid: node for node in (*self._candidates(view), *named)}
        return list(found.values())

    def _nodes(self, view: View) -> list[Node]:
        """Return the node that it runs on, and the second one, if there is one.

        Raises
        ------
        MoorageError
            If they are one, are off, or lack the provider.
        """
        valid = (one for one in self._candidates(view) if self._found(view, one))
        first = next(valid, None)
        if first is None:
            raise NotFound(
                f"no node has a valid ExtStorage provider '{self.provider}'",
                hint=f"gnt-storage diagnose {self.provider}",
            )
        if not self.second_node:
            return [first]
        second = view.config.node(self.second_node)
        if second == first:
            raise BadInput(f"the second node is the first: {first.name}")
        self._valid(view, second)
        return [first, second]

    def _found(self, view: View, node: Node) -> bool:
        if self.node:
            self._valid(view, node)
            return True
        if not view.reached(providers_on(node.uuid)):
            return False
        found = provider_called(self.provider, providers(view, node))
        return bool(found and found.valid)

    def _valid(self, view: View, node: Node) -> Provider:
        """Return the provider that a node has, or raise why it has none."""
        check_online(node)
        found = provider_called(self.provider, providers(view, node))
        if found is None or not found.valid:
            told = found.problem if found else not_found(self.provider)
            raise WrongState(
                f"node {node.name}: {told}",
                hint=f"gnt-storage diagnose {self.provider}",
            )
        return found

    def locks(self, view: View) -> Iterator[Lock]:
        """Share the nodes that it may run on."""
        for node in self._asked(view):
            yield Lock("node", node.uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes for their providers."""
        for node in self._asked(view):
            yield providers_on(node.uuid)

    def check(self, view: View) -> None:
        """Refuse what cannot be certified."""
        disk_words.checked_size(self.size)
        known = {one.name for one in CHECKS}
        unknown = sorted(set(self.checks) - known)
        if unknown:
            raise BadInput(
                f"there is no check '{unknown[0]}'",
                hint=f"one of {', '.join(sorted(known))}",
            )
        kind = template_named(_TEMPLATE)
        kind.parameters({"provider": self.provider, **self.params})
        for node in self._nodes(view):
            found = self._valid(view, node)
            check_parameters(self.params, found, force=self.force_params)

    def _chosen(self, view: View) -> list[Check]:
        """Return the checks that these nodes can make."""
        two = len(self._nodes(view)) > 1
        return [
            one
            for one in CHECKS
            if (not self.checks or one.name in self.checks)
            and (two or not one.needs_two)
        ]

    def tasks(self, view: View) -> Iterator[Task]:
        """Digest its files, make each check, and see that nothing is left."""
        nodes = self._nodes(view)
        yield Run(
            what=f"digest the files of provider {self.provider} on {nodes[0].name}",
            node=nodes[0].uuid,
            do=DigestProvider(provider=self.provider),
        )
        for one in self._chosen(view):
            yield from self._check(view, one, nodes)
        for node in reversed(nodes):
            yield self._clear(view, node, remove=node == nodes[0])

    def _check(self, view: View, one: Check, nodes: list[Node]) -> Iterator[Task]:
        """Yield the tasks of a check."""
        order = self._order(view)
        for part, (which, _) in enumerate(one.parts):
            node = nodes[which]
            clear = ClearProvider(**order, check=one.name, remove=node == nodes[0])
            yield Run(
                what=f"check {one.name} of provider {self.provider} on {node.name}",
                node=node.uuid,
                do=TryProvider(**order, check=one.name, part=part),
                undo=clear,
                lasting=True,
                name=_part(one.name, part),
                use=self._earlier(one, part),
            )
        if one.needs_two:
            yield self._clear(view, nodes[1], one.name, remove=False)
            yield self._clear(view, nodes[0], one.name)

    def _earlier(self, one: Check, part: int) -> dict[str, str | int]:
        """Return what a part has to hear of: the one before, or that anything runs."""
        if part:
            return {"earlier": _part(one.name, part - 1)}
        told = one.name != RUNS and (not self.checks or RUNS in self.checks)
        return {"earlier": _part(RUNS, 0)} if told else {}

    def _clear(
        self, view: View, node: Node, check: str = "", *, remove: bool = True
    ) -> Run:
        return Run(
            what=f"clear up after {check or 'all checks'} on {node.name}",
            node=node.uuid,
            do=ClearProvider(**self._order(view), check=check, remove=remove),
        )

    @once
    def _run(self, view: View) -> str:
        """Return what its volumes are called by."""
        return view.fresh()[-_WORD:]

    def _order(self, view: View) -> dict[str, Any]:
        return {
            "provider": self.provider,
            "run": self._run(view),
            "params": self.params,
            "size": Mib(self.size),
        }

    def result(self, view: View, results: Sequence[Any]) -> Report:
        """Return what each check said."""
        nodes, tasks = self._nodes(view), list(self.tasks(view))
        found: dict[str, CheckResult] = {}
        left: list[str] = []
        scripts = Scripts(version="")
        for task, told in zip(tasks, results, strict=True):
            done = task.do if isinstance(task, Run) else None
            if isinstance(done, TryProvider):
                found[done.check] = convert(told, CheckResult)
            elif isinstance(done, ClearProvider):
                left += told
            elif isinstance(done, DigestProvider):
                scripts = convert(told, Scripts)
        date = datetime.fromtimestamp(view.now, UTC)
        checks = tuple(self._results(found))
        return Report(
            provider=self.provider,
            nodes=tuple(node.name for node in nodes),
            date=f"{date:%Y-%m-%dT%H:%M:%SZ}",
            params=self.params,
            size=self.size,
            scripts=scripts,
            checks=checks,
            left=tuple(dict.fromkeys(left)),
            passed=not left and all(one.verdict != FAILS for one in checks),
        )

    def _results(self, found: dict[str, CheckResult]) -> Iterator[CheckResult]:
        """Yield a result for each check that was asked for, made or not."""
        for one in CHECKS:
            if one.name in found:
                yield found[one.name]
            elif not self.checks or one.name in self.checks:
                why = "it takes a second node: --second-node"
                yield CheckResult(check=one.name, verdict=MOOT, why=why)


def _part(check: str, part: int) -> str:
    """Return what the task of a check's part is called, for those that follow."""
    return f"{check} {part}"
