# SPDX-License-Identifier: BSD-2-Clause
"""The cluster as a whole: what it is, its settings, its operating systems."""

from typing import Any

from moorage.api.features import FEATURES
from moorage.api.rapi.looking import BULK, Do, get
from moorage.api.rapi.making import make
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Asked, Route
from moorage.ops import OPERATIONS

from .jobs import result_of
from .tagging import tags

VERSION = 2


async def _nothing(_asked: Asked) -> None:
    """Return nothing: clients of old look here whether there is anybody."""


async def _version(_asked: Asked) -> int:
    return VERSION


async def _features(_asked: Asked) -> list[str]:
    return list(FEATURES)


async def _info(asked: Asked) -> dict[str, Any]:
    """Return the cluster's settings; of two names, one is older than the other."""
    found: dict[str, Any] = await asked.luxi.call("QueryClusterInfo")
    return {
        **found,
        "vg_name": found.get("volume_group_name"),
        "drbd_helper": found.get("drbd_usermode_helper"),
    }


async def _paused(asked: Asked) -> dict[str, float | None]:
    (until,) = await asked.luxi.call("QueryConfigValues", ["watcher_pause"])
    return {"paused_until": until}


async def _pause(asked: Asked) -> dict[str, float | None]:
    until = asked.fields().get("paused_until", False)
    if not isinstance(until, int | float | None) or isinstance(until, bool):
        raise HttpError(400, "The 'paused_until' parameter should be a time or null")
    return {"paused_until": await asked.luxi.call("SetWatcherPause", until)}


async def _store(asked: Asked) -> dict[str, Any]:
    found: dict[str, Any] = await asked.luxi.call("QueryStore")
    return found


_OS = (
    *("name", "valid", "variants", "parameters"),
    *("api_versions", "hidden", "blacklisted"),
)


async def _systems(asked: Asked) -> list[Any]:
    """Return names, with their variants, or whole objects, by a job that is awaited."""
    number = await asked.submit({"OP_ID": "OP_OS_DIAGNOSE", "output_fields": _OS})
    found = [dict(zip(_OS, row, strict=True)) for row in await result_of(asked, number)]
    if not asked.flag("bulk"):
        return [name for one in found if _usable(one) for name in _names(one)]
    return [one | {"parameters": _described(one["parameters"])} for one in found]


def _described(parameters: list[list[str]]) -> list[dict[str, str]]:
    return [{"name": name, "description": told} for name, told in parameters]


def _usable(one: dict[str, Any]) -> bool:
    return bool(one["valid"]) and not one["hidden"] and not one["blacklisted"]


def _names(one: dict[str, Any]) -> list[str]:
    return [f"{one['name']}+{each}" for each in one["variants"]] or [one["name"]]


def _changes(opcode: dict[str, Any], asked: Asked) -> list[dict[str, Any]]:
    """Refuse what a client could run programs of its own with."""
    if "compression_tools" in asked.fields():
        raise HttpError(403, "compression_tools cannot be set over RAPI")
    return [opcode]


ROUTES: tuple[Route, ...] = (
    get("/", "Say nothing: somebody is there", _nothing, answer=None),
    get("/2", "Say nothing: somebody is there", _nothing, answer=None),
    get("/version", "Tell the version of the interface", _version, answer=int),
    get("/2/features", "Tell what clients may rely on", _features, answer=list[str]),
    get("/2/info", "Tell the cluster's settings", _info, answer=dict[str, Any]),
    get(
        "/2/os",
        "List the operating systems that can be installed",
        _systems,
        BULK,
        answer=list[str | dict[str, Any]],
        role=OPERATIONS["OP_OS_DIAGNOSE"].role,
    ),
    get(
        "/2/store",
        "Tell where the state is kept, who leads, and what needs somebody there",
        _store,
        answer=dict[str, Any],
        role=Role.READ,
    ),
    get(
        "/2/watcher",
        "Tell until when the watcher does nothing, in seconds; null for not at all",
        _paused,
        answer=dict[str, float | None],
    ),
    Route(
        "PUT",
        "/2/watcher",
        "Let the watcher do nothing until some time; null: go on",
        Do(_pause, dict[str, float | None], {"paused_until": "seconds; required"}),
        Role.WRITE,
    ),
    make("PUT", "/2/modify", "OP_CLUSTER_SET_PARAMS", shape=_changes),
    make("PUT", "/2/redistribute-config", "OP_CLUSTER_REDIST_CONF", body=False),
    *tags("/2", "cluster"),
)
