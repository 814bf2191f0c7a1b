# SPDX-License-Identifier: BSD-2-Clause
"""What the OpenAPI document allows, and forbids, is asked; each answer is described.

Schemathesis makes the requests: for each operation some that the document allows, and
some that it does not. Names of what exists stand in half of the paths. The seed is the
minute's unless MOORAGE_SEED names it; MOORAGE_CASES says how many are made of each kind
for each operation, and ``make schema`` makes many.
"""

import asyncio
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from jsonschema_rs import Draft202012Validator
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    status_code_conformance,
)

from moorage.api.rapi.limits import Limits
from moorage.api.rapi.routes import ROUTES, described
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("MOORAGE_SEED") or time.time() // 60)
CASES = int(os.environ.get("MOORAGE_CASES") or 3)
ENDLESS = "/2/events"
"""Its answer never ends; tests of its own read it."""
EXISTING = {
    "instance_name": ("web1", "web2"),
    "node_name": ("node1", "node2", "node3"),
    "group_name": ("default",),
    "network_name": ("lan",),
    "disk": ("data1", "0"),
    "pool_name": ("fast",),
    "resource": ("instance", "node", "job", "disk", "group", "network", "pool"),
    "job": ("1", "2"),
}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
BUSY = {502, 503, 504}
"""Statuses above 500 that are promised: what stands behind the door."""


class Served:
    """A door in a thread of its own, as long as it is needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ready, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(60)

    async def _serve(self) -> None:
        builder = ClusterBuilder().disk("data1").instance("web1").instance("web2")
        cluster = await SimCluster.start(self._directory / "nodes", builder)
        network = {"network_name": "lan", "network": "192.0.2.0/24"}
        await cluster.run("OP_NETWORK_ADD", **network)
        async with rapi_door(cluster, self._directory, Limits()) as door:
            self.door: RapiDoor = door
            self._ready.set()
            await asyncio.to_thread(self._done.wait)
        await cluster.stop()

    def close(self) -> None:
        self._done.set()
        self._thread.join(60)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path)
    yield found
    found.close()


def asking(
    served: Served, dice: Random, session: requests.Session, told: Counter[int]
) -> Callable[[Case], None]:
    """Return what asks, and looks at the answer."""

    def ask(case: Case) -> None:
        if dice.random() < 0.8:  # else most are another request's
            case.headers.pop("Idempotency-Key", None)
        for name, known in EXISTING.items():
            if name in case.path_parameters and dice.random() < 0.5:
                case.path_parameters[name] = dice.choice(known)
        response = case.call(
            base_url=f"https://127.0.0.1:{served.door.port}",
            session=session,
            headers={"Authorization": "Basic dG9wOnNlY3JldA=="},
            verify=False,
            timeout=30,
        )
        told[response.status_code] += 1
        checks = CHECKS[response.status_code in BUSY :]
        case.validate_response(response, checks=checks)
        kind = response.headers["content-type"][0].partition(";")[0]
        schema = described_body(case, response.status_code, kind)
        told_body = response.json() if kind == "application/json" else response.text
        Draft202012Validator(schema).validate(told_body)

    return ask


def described_body(case: Case, status: int, kind: str) -> dict[str, Any]:
    """Return the schema of an answer; Schemathesis' own check knows no tuples."""
    document = described()
    told = document["paths"][case.path][case.method.lower()]["responses"][str(status)]
    if "$ref" in told:
        told = document["components"]["responses"][str(status)]
    kinds = {one.partition(";")[0]: each for one, each in told["content"].items()}
    return {**kinds[kind]["schema"], "components": document["components"]}


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_answer_is_one_that_the_document_describes(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = schemathesis.openapi.from_dict(described())
    told: Counter[int] = Counter()
    every = [one.ok() for one in schema.get_all_operations()]
    assert len(every) == len(ROUTES)
    finite = [one for one in every if one.path != ENDLESS]
    broke: list[str] = []
    with requests.Session() as session:
        dice = Random(SEED)  # noqa: S311
        ask = asking(served, dice, session, told)
        for operation, mode in product(finite, GenerationMode):
            try:
                asked(operation, mode, ask)
            except* Exception as error:  # noqa: BLE001 - all of them are told
                label = f"{operation.label}, {mode.value}"
                broke += [f"{label}: {one}" for one in error.exceptions]
    with capsys.disabled():
        by_status = ", ".join(f"{one}: {told[one]}" for one in sorted(told))
        sys.stdout.write(f"\nseed {SEED}: {told.total()} cases ({by_status})\n")
    assert not broke, "\n\n".join(map(str, broke))


def asked(operation: Any, mode: GenerationMode, ask: Callable[[Case], None]) -> None:
    @seed(SEED)
    @settings(
        max_examples=CASES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Case) -> None:
        ask(case)

    run()
