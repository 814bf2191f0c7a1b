# SPDX-License-Identifier: BSD-2-Clause
"""The tags of the cluster and of its objects."""

from moorage.api.rapi.looking import Do
from moorage.api.rapi.making import DRY_RUN, Make
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Kind, Route

_TAG = Arg("tag", Kind.TEXTS, "a tag", field="tags", required=True)


def tags(path: str, kind: str) -> tuple[Route, ...]:
    """Return the resource of the tags of an object, whose name the path ends with."""

    async def look(asked: Asked) -> list[str]:
        name = next(iter(asked.path.values()), "")
        found: list[str] = await asked.luxi.call("QueryTags", kind, name)
        return found

    def change(method: str, op: str, does: str) -> Route:
        def shape(opcode: dict[str, object], asked: Asked) -> list[dict[str, object]]:
            name = next(iter(asked.path.values()), "")
            kept = {k: v for k, v in opcode.items() if k not in asked.path}
            return [{**kept, "name": name}]

        fixed = {"kind": kind}
        made = Make(op, (_TAG, DRY_RUN), fixed=fixed, body=False, shape=shape)
        return Route(method, f"{path}/tags", does, made, made.role, made.args)

    return (
        Route(
            "GET",
            f"{path}/tags",
            f"List the tags of the {kind}",
            Do(look, list[str]),
            Role.KNOWN,
        ),
        change("PUT", "OP_TAGS_SET", f"Give the {kind} tags"),
        change("DELETE", "OP_TAGS_DEL", f"Take tags from the {kind}"),
    )
