# SPDX-License-Identifier: BSD-2-Clause
"""The survival certificate: who restarts where after each loss."""

import json
from typing import Any

from moorage.htools.explain import NAMES
from moorage.htools.pools import pools, stranded_without
from moorage.htools.redundancy import Restart, survive
from moorage.htools.state import State


def certificate(state: State) -> dict[str, Any]:
    """Return the certificate as JSON values."""
    return {
        "nodes": [_loss(view, at) for _, view in state.split() for at in view.view],
        "pools": [
            {
                "pool": "/".join(pool.name),
                "stranded": [
                    state.insts[at].name for at in stranded_without(state, pool.name)
                ],
            }
            for pool in pools(state.fleet)
        ],
    }


def _loss(state: State, at: int) -> dict[str, Any]:
    found = survive(state, at, thorough=True)
    return {
        "lost": state.nodes[at].name,
        "survives": bool(found),
        "restarts": [_restart(state, one) for one in found.restarts],
    }


def _restart(state: State, one: Restart) -> dict[str, Any]:
    name = state.insts[one.inst].name
    if one.node >= 0:
        return {"instance": name, "node": state.nodes[one.node].name}
    why = {state.nodes[at].name: NAMES[fail] for at, fail in one.reasons if at >= 0}
    return {"instance": name, "node": None, "reasons": why}


def report(state: State, style: str) -> int:
    """Print the certificate; the status is 1 when some node cannot be lost."""
    found = certificate(state)
    if style == "json":
        print(json.dumps(found, indent=2))
    else:
        for loss in found["nodes"]:
            _print_loss(loss)
        for pool in found["pools"]:
            count = len(pool["stranded"])
            print(f"loss of pool {pool['pool']}: {count} instances without their disks")
    return 0 if all(loss["survives"] for loss in found["nodes"]) else 1


def _print_loss(loss: dict[str, Any]) -> None:
    verdict = "everyone restarts" if loss["survives"] else "NOT everyone restarts"
    print(f"loss of {loss['lost']}: {verdict}")
    for one in loss["restarts"]:
        if one["node"] is not None:
            print(f"  {one['instance']} -> {one['node']}")
            continue
        reasons = ", ".join(f"{node}: {why}" for node, why in one["reasons"].items())
        print(f"  {one['instance']} is stranded ({reasons or 'no node is left'})")
