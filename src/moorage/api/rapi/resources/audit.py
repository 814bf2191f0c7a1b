# SPDX-License-Identifier: BSD-2-Clause
"""Who had what changed."""

from dataclasses import dataclass

from moorage.api.rapi.events import number_of
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Handler, Kind, Route


@dataclass(frozen=True, slots=True)
class Audit(Handler):
    """Lines of the audit log, as they are kept: each has the checksum of the last."""

    answer = str
    media = "application/x-ndjson"

    async def __call__(self, asked: Asked) -> str:
        """Return those behind an entry; nothing behind the last one."""
        after = number_of(asked.args.get("after", "0"), "after")
        told = await asked.luxi.call("QueryAudit", after)
        return "".join(f"{line}\n" for line in told["lines"])


ROUTES = (
    Route(
        "GET",
        "/2/audit",
        "Tell who had what changed: lines of JSON, at most 500",
        Audit(),
        Role.READ,
        (Arg("after", Kind.TEXT, "number of an entry: those behind it; none: all"),),
    ),
)
