# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that hold a provider to its contract: the product's own way to run scripts."""

import hashlib
import os
import time
from pathlib import Path
from typing import TypeVar

from moorage import __version__
from moorage.errors import Failed
from moorage.node.records.trials import Trials
from moorage.protocol import (
    ClearProvider,
    DigestProvider,
    OnProvider,
    Report,
    TryProvider,
)
from moorage.storage import Site
from moorage.storage.certify import (
    Bench,
    CheckResult,
    Doing,
    Scripts,
    Seen,
    Step,
    let_go,
    named,
    removed,
)
from moorage.storage.provider import not_found, usable

from .context import NodeContext

R = TypeVar("R")

_HISTORY = frozenset({".git", ".hg", ".svn", ".bzr"})


async def try_(at: NodeContext, args: TryProvider, _report: Report) -> CheckResult:
    """Do a part of a check; after the only one, remove its volumes."""
    check, bench = named(args.check), _bench(at, args)
    result = await drive(
        at, args.run, check.judged(args.part, bench, args.earlier), at.trials
    )
    if len(check.parts) == 1:
        await _clear(at, args, bench, remove=True)
    return result


async def clear(
    at: NodeContext, args: ClearProvider, _report: Report
) -> tuple[str, ...]:
    """Let go of what is left, and remove it."""
    return await _clear(at, args, _bench(at, args), remove=args.remove)


async def digest(at: NodeContext, args: DigestProvider, _report: Report) -> Scripts:
    """Return the digests of a provider's files."""
    site = Site(node=at.name, providers=usable(at.machine.providers()))
    _check_valid(site, args.provider)
    top = Path(site.providers[args.provider].path)
    files = sorted(path for path in top.rglob("*") if path.is_file())
    files = [path for path in files if not _is_history(path.relative_to(top))]
    known = os.uname()
    return Scripts(
        version=__version__,
        system=f"{known.sysname} {known.release} {known.machine}",
        files={str(path.relative_to(top)): _sha256(path) for path in files},
    )


def _is_history(path: Path) -> bool:
    """Whether a file is of a version control system, and none that scripts read."""
    return not _HISTORY.isdisjoint(path.parts)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bench(at: NodeContext, args: OnProvider[object]) -> Bench:
    site = Site(
        node=at.name,
        params=args.params,
        providers=usable(at.machine.providers()),
    )
    _check_valid(site, args.provider)
    return Bench(args.order(), site, args.check)


def _check_valid(site: Site, name: str) -> None:
    """Raise `Failed` unless the node has a valid provider."""
    found = site.providers.get(name)
    if found is None or found.problem:
        raise Failed(found.problem if found else not_found(name), node=site.node)


async def _clear(
    at: NodeContext, args: OnProvider[object], bench: Bench, *, remove: bool
) -> tuple[str, ...]:
    disks = at.trials.of(args.run, bench.prefix())
    await drive(at, args.run, let_go(bench, disks), None)
    left = tuple[str, ...]()
    if remove:
        left = await drive(at, args.run, removed(bench, disks), None)
    at.trials.drop(args.run, {disk.volume for disk in disks} - set(left))
    return left


async def drive(at: NodeContext, run: str, steps: Doing[R], trials: Trials | None) -> R:
    """Run the steps of a check, and return what they return.

    Parameters
    ----------
    trials
        Where volumes are noted before they are made; None to note none.
    """
    try:
        step = next(steps)
        while True:
            if trials and step.makes:
                trials.note(run, step.makes)
            seen = await _seen(at, step)
            if trials and step.unmakes and seen.ok:
                trials.drop(run, [step.unmakes.volume])
            step = steps.send(seen)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        steps.close()


async def _seen(at: NodeContext, step: Step) -> Seen:
    began = time.monotonic()
    try:
        output = await at.run(step.command)
    except Failed as error:
        killed = bool(error.facts.get("killed"))
        lasted = time.monotonic() - began
        return Seen(ok=False, said=error.message, killed=killed, seconds=lasted)
    lasted = time.monotonic() - began
    return Seen(ok=not output.code, printed=output.stdout, seconds=lasted)


VERBS = (
    TryProvider.done_by(try_),
    ClearProvider.done_by(clear),
    DigestProvider.done_by(digest),
)
"""Every verb of a certification."""
