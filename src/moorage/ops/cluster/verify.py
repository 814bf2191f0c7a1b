# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster verify``: compare what is with what the configuration says."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from moorage.errors import BadInput
from moorage.jobs import Auditor, FailedHook, Question, View, once
from moorage.model import Disk, Instance, Node
from moorage.model.caller import Role
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.certificates import authority_on, pins_on
from moorage.ops.planning import allocators

from . import (
    checks_address,
    checks_copies,
    checks_devices,
    checks_mirrors,
    checks_networks,
    checks_pools,
    checks_processors,
    checks_ssconf,
    checks_store,
    checks_watcher,
    verify_codes,
)
from .observation import Finding, Seen, ask_facts, see


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong, as clients get it.

    Attributes
    ----------
    object
        What it is about: ``node node1``.
    message, hint
        A sentence, and a command to type.
    ecode
        Ganeti's name of the check, as ``-I`` takes it.
    code
        Of the error that it comes from, if it does.
    """

    object: str
    message: str
    hint: str
    ecode: str
    code: str = ""


def problem(one: Finding, ecode: str) -> Problem:
    """Return a finding with the name of its check."""
    return Problem(
        object=one.object,
        message=one.message,
        hint=one.hint,
        ecode=ecode,
        code=one.code,
    )


class Verified(Struct, frozen=True, kw_only=True):
    """What a look at the cluster found.

    Attributes
    ----------
    errors, warnings, notices
        Only errors mean that verify fails.
    checked
        How much was looked at, by its kind.
    jobs
        ``[false, SENTENCE]`` of each error: Ganeti's ``gnt-cluster verify`` expects
        jobs that look, and tells of what became none. No job follows.
    """

    errors: list[Problem] = []
    warnings: list[Problem] = []
    notices: list[Problem] = []
    checked: dict[str, int]
    jobs: list[tuple[bool, str]] = []


def _complaint(one: Problem) -> tuple[bool, str]:
    return False, f"{one.object}: {one.message}"


class ClusterVerify(Auditor, frozen=True, kw_only=True):
    """Compare the configuration with what the nodes say.

    It holds no locks: it must work when something hangs. So what a job is changing
    at the moment may show up.

    Attributes
    ----------
    group_name
        Tell only what is about this node group.
    skip_checks
        ``nplusone_mem``: whether the loss of a node could be borne is not looked at.
    ignore_errors
        Codes of what is a warning at most.
    """

    op_id = "OP_CLUSTER_VERIFY"
    role = Role.READ

    group_name: str | None = None
    skip_checks: tuple[str, ...] = ()
    ignore_errors: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return the opcode."""
        return "CLUSTER_VERIFY"

    def questions(self, view: View) -> Iterator[Question]:
        """Ask every node that is not marked offline for all that it knows."""
        config = view.config
        yield authority_on(view)
        yield pins_on(view)
        yield checks_copies.copies_on(view)
        yield checks_store.store_on(view)
        yield checks_watcher.look_on(view)
        yield from allocators.ask_there(config, config.cluster.default_iallocator)
        for question in ask_facts(config):
            yield question
            yield providers_on(question.node)
        yield from checks_devices.ask(config)
        yield from checks_mirrors.ask(config)
        yield from checks_networks.ask(config)
        yield from checks_pools.ask(config)
        yield from checks_processors.ask(config)
        yield from checks_ssconf.ask(config)
        yield from checks_address.ask(config)

    def check(self, view: View) -> None:
        """Refuse only words: a cluster in any state can be looked at. Look at it."""
        verify_codes.check_codes(self.ignore_errors)
        for name in self.skip_checks:
            if name != verify_codes.SURVIVAL:
                raise BadInput(
                    f"verify cannot leave out '{name}', but {verify_codes.SURVIVAL}"
                )
        self.found(view)

    @once
    def found(self, view: View) -> Verified:
        """Return what was found."""
        seen = see(view)
        found = Verified(checked=_counted(seen))
        for kind, one in self._findings(seen):
            getattr(found, kind).append(one)
        found.jobs.extend(map(_complaint, found.errors))
        return found

    def _findings(self, seen: Seen) -> Iterator[tuple[str, Problem]]:
        config = seen.config
        group = config.group(self.group_name).uuid if self.group_name else ""
        for check, code in verify_codes.CHECKS.items():
            if self.skip_checks and check in verify_codes.SURVIVAL_CHECKS:
                continue
            for one in check(seen):
                if group and not verify_codes.about(config, one, group):
                    continue
                ecode = one.ecode or code or verify_codes.code(one)
                mild = one.warning or ecode in self.ignore_errors
                kind = "notices" if one.notice else "warnings" if mild else "errors"
                yield kind, problem(one, ecode)

    def result(self, view: View, _results: Sequence[Any]) -> Verified:
        """Return errors, warnings, notices, and how much was looked at."""
        return self.found(view)

    def judged(self, result: Any, failed: Sequence[FailedHook]) -> Any:  # noqa: ANN401
        """Return the result with what hooks found: they are checks of their own."""
        mild = verify_codes.HOOKS in self.ignore_errors
        hooks = (
            Finding(f"node {one.node}", f"hook {one.script}: {one.problem}")
            for one in failed
        )
        found = [problem(one, verify_codes.HOOKS) for one in hooks]
        kind = "warnings" if mild else "errors"
        jobs = [] if mild else list(map(_complaint, found))
        more = {kind: found, "jobs": jobs}
        return result | {name: result[name] + to_builtins(more[name]) for name in more}


def _counted(seen: Seen) -> dict[str, int]:
    config = seen.config
    return {
        "nodes": config.count(Node),
        "nodes that answered": len(seen.facts),
        "instances": config.count(Instance),
        "disks": config.count(Disk),
        "guests": sum(len(facts.guests) for facts in seen.facts.values()),
    }
