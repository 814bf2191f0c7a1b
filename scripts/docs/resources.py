# SPDX-License-Identifier: BSD-2-Clause

"""The page of RAPI's resources, from their declarations."""

import re
from collections.abc import Iterator

from declared import Lines, code, plain, table, type_name

from moorage.api.rapi.looking import Do, Listed, Single
from moorage.api.rapi.making import Make
from moorage.api.rapi.metrics import METRICS
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Route
from moorage.api.rapi.routes import ROUTES

_MAY = {
    Role.KNOWN: "look at what has no secrets: Ganeti's user without options",
    Role.READ: "look at everything, consoles and queries too",
    Role.OPERATE: "start, stop and move guests, use consoles, follow or cancel jobs",
    Role.WRITE: "make, change and remove anything",
    Role.ADOPT: "take over what a provider finds by a disk's name (`reuse_data`), too",
    Role.ROOT: "set what lets a node's root act for them, too",
}


def metrics() -> Lines:
    """Yield a line a metric."""
    rows = [[code(f"moorage_{one.name}"), one.kind, one.help] for one in METRICS]
    yield from table(("name", "kind", "what it says"), rows)


def roles() -> Lines:
    """Yield a line a role."""
    yield from table(("role", "may"), [[code(one.word), _MAY[one]] for one in Role])


def resources() -> Lines:
    """Yield a table of the resources below each first word of a path."""
    groups: dict[str, list[Route]] = {}
    for route in ROUTES:
        word = re.sub(r"^/2?/?", "", route.path).split("/")[0]
        alone = word in {"", "version", "features", "info", "os", "modify", "tags"}
        alone |= word in {"redistribute-config", "openapi.json"}
        groups.setdefault("cluster" if alone else word, []).append(route)
    for word, routes in groups.items():
        yield from (f"## {word.capitalize()}", "")
        rows = [_row(route) for route in routes]
        head = ("method", "path", "role", "what it does", "arguments", "body", "answer")
        yield from table(head, rows)


def _row(route: Route) -> list[str]:
    args = (f"`{one.name}`{'' if one.required else '?'}" for one in route.args)
    return [
        route.method,
        code(route.path),
        route.role.word,
        plain(route.does),
        " ".join(args),
        "; ".join(_body(route)),
        _answer(route),
    ]


def _body(route: Route) -> Iterator[str]:
    serve = route.serve
    if isinstance(serve, Do):
        yield from (f"`{name}`: {means}" for name, means in serve.body.items())
    if not isinstance(serve, Make):
        return
    if serve.takes is not None:
        yield code(type_name(serve.takes).removeprefix("Literal"))
    if serve.body:
        yield f"[{serve.op}](opcodes.md#{serve.op.lower()})"
        yield from (f"`{one}` for `{name}`" for one, name in serve.renames.items())
        yield from (f"`{name}`: {means}" for name, means in serve.extra.items())


def _answer(route: Route) -> str:
    serve = route.serve
    if isinstance(serve, Make):
        return "a job"
    if isinstance(serve, Listed | Single):
        fields = " ".join(map(code, serve.fields))
        return f"names with URIs, or {fields}" if isinstance(serve, Listed) else "one"
    return code(type_name(serve.answer)) if serve.answer is not None else "null"
