# SPDX-License-Identifier: BSD-2-Clause
"""How many more instances fit, now or without some nodes, and what a loss would do.

Not in Ganeti. It is the planner's answer, on what LUXI tells.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from moorage.api.rapi.looking import get
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Kind, Route
from moorage.api.rapi.survival import ONE_AT_A_TIME, asked_of
from moorage.htools.constants import PAIRED, SPELLINGS
from moorage.htools.constraints.violation import Violation
from moorage.htools.explain.capacity import explain_full
from moorage.htools.explain.reason import named
from moorage.htools.formats import luxi
from moorage.htools.loader import load
from moorage.htools.placement.allocate import Asking, targets
from moorage.htools.placement.space import Filling, Safety, Size, fill, model
from moorage.htools.squeezing import switched
from moorage.htools.state import State
from moorage.htools.survival.n1 import lose, survive
from moorage.units import parse_size

_MOST = 1_000
"""Instances that are counted."""
_WHY = 20
"""Reasons that are told; more of them say the same of other nodes."""


Tell = Callable[[State, Mapping[str, Any]], dict[str, Any]]
"""Answers a question about a cluster, given the arguments of a request."""


def _telling(tell: Tell) -> Callable[[Asked], Awaitable[dict[str, Any]]]:
    """Return a handler that reads the cluster, and has the planner answer."""

    async def told(asked: Asked) -> dict[str, Any]:
        async with ONE_AT_A_TIME:
            answers = await asked_of(asked.luxi)
            return await asyncio.to_thread(_told, tell, answers, asked.args)

    return told


def _told(
    tell: Tell, answers: dict[str, Any], args: Mapping[str, Any]
) -> dict[str, Any]:
    return tell(load(luxi.parse(answers)).state, args)


def _loss(state: State, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return where everybody restarts when a node is lost, and who cannot."""
    (at,) = _named(state, args["node"])
    found = survive(state, at, thorough=True)
    names = [state.insts[one.inst].name for one in found.restarts]
    each = list(zip(names, found.restarts, strict=True))
    return {
        "node": state.nodes[at].name,
        "survives": bool(found),
        "restarts": {
            name: state.nodes[one.node].name for name, one in each if one.node >= 0
        },
        "stranded": {
            name: [_why(state, why) for why in one.reasons[:_WHY]]
            for name, one in each
            if one.node < 0
        },
    }


def _why(state: State, found: Violation) -> str:
    """Return why somebody does not restart on a node, or at all."""
    nodes = (found.node,) if found.node >= 0 else ()
    return named(state, nodes, found).sentence()


def _without(state: State, nodes: str) -> tuple[State, list[str]]:
    """Return a cluster that has lost some nodes, and who runs nowhere then."""
    lost = _named(state, nodes)
    state = switched(state, lost, offline=True)
    stranded: list[str] = []
    for at in lost:
        found, state = lose(state, at)
        stranded += [state.insts[one].name for one in found.stranded]
    return state, sorted(stranded)


def _named(state: State, names: str) -> list[int]:
    """Return the places of nodes whose names stand with commas between them."""
    known = {node.name: node.idx for node in state.nodes}
    for name in names.split(","):
        if name not in known:
            raise HttpError(404, f"Node '{name}' not known")
    return [known[name] for name in dict.fromkeys(names.split(","))]


def _counted(state: State, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return what fits into a cluster, and why not one more."""
    more: dict[str, Any] = {}
    if "without" in args:
        state, more["stranded"] = _without(state, args["without"])
    size, template = _size(state, args), _template(state, args)
    told: dict[str, Any] = {
        "size": {"memory": size.mem, "disk": size.disk, "vcpus": size.cpu},
        "disk_template": template,
        "lost": sorted(node.name for node in state.failing),
        **more,
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
        _telling(_counted),
        Arg("memory", Kind.TEXT, "of each: MiB, or with a unit; else the policy's"),
        Arg("disk", Kind.TEXT, "of each: MiB, or with a unit; else the policy's"),
        Arg("vcpus", Kind.TEXT, "of each; else the policy's"),
        Arg("disk_template", Kind.TEXT, "of their disks; else the first that may be"),
        Arg("without", Kind.TEXT, "nodes, with commas between: as if they were lost"),
        answer=dict[str, Any],
        role=Role.READ,
    ),
    get(
        "/2/capacity/loss",
        "Tell where instances restart when a node is lost, and who cannot",
        _telling(_loss),
        Arg("node", Kind.TEXT, "the node that is lost", required=True),
        answer=dict[str, Any],
        role=Role.READ,
    ),
)
