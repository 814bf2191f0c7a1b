# SPDX-License-Identifier: BSD-2-Clause
"""How many more instances fit, and which nodes cannot be lost; not in Ganeti."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from moorage.api.rapi.looking import get
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Kind, Route
from moorage.api.rapi.survival import ONE_AT_A_TIME, asked_of
from moorage.htools.constants import PAIRED, SPELLINGS
from moorage.htools.explain.capacity import explain_full
from moorage.htools.formats import luxi
from moorage.htools.loader import load
from moorage.htools.placement.allocate import Asking, targets
from moorage.htools.placement.space import Filling, Safety, Size, fill, model
from moorage.htools.state import State
from moorage.units import parse_size

_MOST = 1_000
"""Instances that are counted."""
_WHY = 20
"""Reasons that are told; more of them say the same of other nodes."""


async def _capacity(asked: Asked) -> dict[str, Any]:
    async with ONE_AT_A_TIME:
        answers = await asked_of(asked.luxi)
        return await asyncio.to_thread(_counted, answers, asked.args)


def _counted(answers: dict[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """Return what fits into a cluster, and why not one more."""
    state = load(luxi.parse(answers)).state
    size, template = _size(state, args), _template(state, args)
    told: dict[str, Any] = {
        "size": {"memory": size.mem, "disk": size.disk, "vcpus": size.cpu},
        "disk_template": template,
        "lost": sorted(node.name for node in state.failing),
    }
    how = _how(state, template)
    if how is None:
        return told | {"fits": 0, "nodes": {}, "why": ["no node is online"]}
    use = state.policy.standard.spindles
    done = fill(state, model(state, size, template, use), how)
    placed = Counter(state.nodes[one.p].name for one in done.new)
    why = explain_full(done, size, template, use, how).sentences(_WHY)
    return told | {"fits": len(done.new), "nodes": placed, "why": why}


def _how(state: State, template: str) -> Filling | None:
    """Return how to fill a cluster, as the master would; None where nothing can be."""
    groups = [
        at
        for at, group in enumerate(state.groups)
        if group.alloc_policy != "unallocable"
    ]
    places = targets(state, 2 if template == PAIRED else 1, Asking(), groups)
    if not places:
        return None
    safe = None if state.is_alone else Safety(start=state)
    return Filling(places, safe, _MOST, mirrors=True)


def _size(state: State, args: Mapping[str, Any]) -> Size:
    """Return the size that is asked for; the policy's own in what is left out."""
    usual = state.policy.standard
    memory = parse_size(args["memory"]) if "memory" in args else usual.memory
    disk = parse_size(args["disk"]) if "disk" in args else usual.disk
    cpus = args.get("vcpus", str(usual.cpus))
    if not cpus.isdecimal() or len(cpus) > 4:
        raise HttpError(400, f"Invalid value for the argument 'vcpus': {cpus!r}")
    return Size(memory, disk, int(cpus), usual.spindles)


def _template(state: State, args: Mapping[str, Any]) -> str:
    wanted = args.get("disk_template")
    if wanted is None:
        return state.policy.templates[0]
    if wanted not in SPELLINGS:
        raise HttpError(400, f"there is no disk template '{wanted}'")
    return SPELLINGS[wanted]


ROUTES: tuple[Route, ...] = (
    get(
        "/2/capacity",
        "Tell how many more instances fit, why not one more, and which nodes cannot be "
        "lost",
        _capacity,
        Arg("memory", Kind.TEXT, "of each: MiB, or with a unit; else the policy's"),
        Arg("disk", Kind.TEXT, "of each: MiB, or with a unit; else the policy's"),
        Arg("vcpus", Kind.TEXT, "of each; else the policy's"),
        Arg("disk_template", Kind.TEXT, "of their disks; else the first that may be"),
        answer=dict[str, Any],
        role=Role.READ,
    ),
)
