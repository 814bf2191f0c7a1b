# SPDX-License-Identifier: BSD-2-Clause
"""A master that answers about a cluster over LUXI and takes every job."""

import json
import socket
from pathlib import Path
from typing import Any, Final

import hscan
import servers

from moorage.htools.fleet import Fleet

_KNOWN, _UNKNOWN = 0, 1
_NESTED: Final = {"ndp": "ndparams", "be": "beparams"}


class Master(servers.Peer):
    """A master, for the time of a ``with`` block.

    Attributes
    ----------
    path : str
        Where it listens.
    jobs : list
        The opcodes of each job submitted, in order.
    status : str
        What becomes of every job.
    """

    def __init__(self, path: Path, fleet: Fleet, status: str = "success") -> None:
        self.path = str(path)
        super().__init__(socket.AF_UNIX, self.path, servers.END, self._replied)
        self.answers = hscan.answers(fleet)
        for inst in self.answers["instances"]:
            inst["beparams"]["memory"] = inst["beparams"]["maxmem"]
        self.status = status
        self.jobs: list[list[dict[str, Any]]] = []

    def _replied(self, request: bytes) -> bytes:
        asked = json.loads(request)
        return servers.result(json.dumps(self._answer(asked["method"], asked["args"])))

    def _answer(self, method: str, args: Any) -> Any:
        if method == "Query":
            return self._query(*args[:2])
        if method == "QueryClusterInfo":
            return self.answers["info"]
        if method == "QueryJobs":
            more: list[Any] = [[] for _ in args[1][1:]]
            return [[self.status, *more] for _ in args[0]]
        if method == "SubmitManyJobs":  # Ganeti's planners
            return [[True, self._submitted(job)] for job in args[0]]
        return self._submitted(args[1])

    def _submitted(self, job: list[dict[str, Any]]) -> int:
        self.jobs.append(job)
        return len(self.jobs)

    def _query(self, what: str, fields: list[str]) -> dict[str, Any]:
        rows = self.answers[f"{what}s"]
        return {
            "fields": [
                {"name": name, "title": name, "kind": "other", "doc": name}
                for name in fields
            ],
            "data": [[_cell(row, name) for name in fields] for row in rows],
        }


def _cell(row: dict[str, Any], field: str) -> list[Any]:
    """Return the status and value of a field."""
    outer, slash, inner = field.partition("/")
    values = row.get(_NESTED[outer], {}) if slash else row
    name = inner if slash else field
    return [_KNOWN, values[name]] if name in values else [_UNKNOWN, None]
