# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on a storage as a whole: what is in it, and whether it works here."""

from collections.abc import Iterator

from moorage.errors import Failed, MoorageError
from moorage.model import Examined, Need, Place, Unit
from moorage.protocol import ExamineStorage, Listed, ListVolumes, Report
from moorage.storage import Can, Template
from moorage.storage.provider import room_key

from .context import NodeContext

LAST_LINES = ", last lines of output:"


async def volumes(at: NodeContext, args: ListVolumes, _report: Report) -> list[Listed]:
    """Return which volumes some storages have here; one that fails stops no other."""
    return [await _listed(at, place) for place in args.places]


async def _listed(at: NodeContext, place: Place) -> Listed:
    steps = at.template_at(place).volumes(dict(place.params))
    try:
        found = await at.do(steps)
    except MoorageError as error:
        return Listed(problem=error.message)
    return Listed(volumes=found)


async def examine(
    at: NodeContext, args: ExamineStorage, _report: Report
) -> list[Examined]:
    """Say of some places whether this node has what disks there need, and its room."""
    return [await _examined(at, place) for place in args.places]


async def _examined(at: NodeContext, place: Place) -> Examined:
    template = at.template_at(place)
    needs, units = list(_installed(at, template)), tuple[Unit, ...]()
    if not any(need.problem for need in needs):
        needs += await _needs(at, template)
    if not any(need.problem for need in needs):
        units = await _units(at, template)
        needs += _lacking(template, units)
    return Examined(place=place, needs=tuple(needs), units=units)


def _installed(at: NodeContext, template: Template) -> Iterator[Need]:
    declared = template.capabilities
    for name in declared.programs:
        there = at.machine.has_program(name)
        problem = "" if there else f"program {name} is not installed"
        yield Need(kind="program", name=name, problem=problem)
    for name in declared.modules:
        there = at.machine.has_module(name)
        problem = "" if there else f"the kernel has no module {name}"
        yield Need(kind="module", name=name, problem=problem)


async def _needs(at: NodeContext, template: Template) -> list[Need]:
    try:
        return list(await at.do(template.examine()))
    except Failed as error:
        why = _in_a_line(error.message)
        return [Need(kind="storage", name=template.name, problem=why)]


def _in_a_line(message: str) -> str:
    """Return a message with the last line of what a program printed, of many."""
    first, *others = [line.strip() for line in message.splitlines() if line.strip()]
    return ": ".join([first.removesuffix(LAST_LINES), *others[-1:]])


def _lacking(template: Template, units: tuple[Unit, ...]) -> Iterator[Need]:
    """Yield the storage unit, if the template tells its room and it is not there."""
    if Can.ROOM in template.capabilities.can:
        site = template.site
        key = room_key(template.unit_key(site.settings, site.params), site.pool)
        if key not in {unit.key for unit in units}:
            kind = template.capabilities.facts.unit
            yield Need(kind=kind, name=key, problem=f"there is no {kind} {key}")


async def _units(at: NodeContext, template: Template) -> tuple[Unit, ...]:
    try:
        return await at.do(template.room())
    except Failed:
        return ()  # how much room there is does not say whether it works


VERBS = (ListVolumes.done_by(volumes), ExamineStorage.done_by(examine))
"""Every verb on a storage."""
