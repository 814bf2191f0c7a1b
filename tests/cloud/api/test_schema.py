# SPDX-License-Identifier: BSD-2-Clause
"""Whatever the documents allow, and what they do not, is asked: nothing breaks.

Each answer is one that the document describes. Schemathesis makes the requests. Ids of
what there is stand in half of the paths. The seed is the minute's unless MOORAGE_SEED
names it; MOORAGE_CASES says how many are made of each kind for each operation.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from random import Random
from typing import Any

import pytest
import schemathesis
from cloud_things import Things
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from jsonschema_rs import Draft202012Validator
from schemathesis import Case, GenerationMode
from schemathesis.core.transport import Response
from site_of_people import Site, served

from moorage_cloud.api.urls import SERVICES
from moorage_cloud.api.wire.openapi import document
from moorage_cloud.api.wire.service import Service

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("MOORAGE_SEED") or time.time() // 60)
CASES = int(os.environ.get("MOORAGE_CASES") or 3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("service", SERVICES, ids=lambda one: one.root)
def test_nothing_breaks(
    site: Site, service: Service, capsys: pytest.CaptureFixture[str]
):
    things, dice, told = Things(site), Random(SEED), Counter[int]()  # noqa: S311
    described = document(service, f"http://localhost/{service.root}")
    del described["security"]  # odd tokens are tried elsewhere
    broke: list[str] = []

    def run(case: Case) -> None:
        response = sent(case, service, things, dice, address)
        status = response.status_code
        told[status] += 1
        odd = "" if status < 500 or status == 503 else response.text
        odd = odd or undescribed(described, case, response)
        if odd:
            broke.append(f"{case.as_curl_command()}: {odd}")

    schema = schemathesis.openapi.from_dict(described)
    every = [one.ok() for one in schema.get_all_operations()]
    assert every
    with served() as address:
        for operation, mode in product(every, GenerationMode):
            # Any text can stand in a path: nothing there can be wrong.
            named = [*operation.query, *operation.body]
            if named or mode is GenerationMode.POSITIVE:
                tried(operation, mode, run)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{service.root}, seed {SEED}: {dict(sorted(told.items()))}\n"
        )
    assert not broke, "\n".join(broke)


def sent(
    case: Case, service: Service, things: Things, dice: Random, address: str
) -> Response:
    """Ask as an administrator or a member."""
    for name, known in things.ids.items():
        if name in case.path_parameters and dice.random() < 0.5:
            case.path_parameters[name] = known
    who = dice.choice([things.site.root, things.site.anna])
    headers = {"X-Auth-Token": who.token, "X-Subject-Token": things.site.bob.token}
    if service.name:
        headers["OpenStack-API-Version"] = f"{service.name} latest"
    base = f"{address}/{service.root}"
    return case.call(base_url=base, headers=headers, timeout=30)


def undescribed(described: dict[str, Any], case: Case, response: Response) -> str:
    """Return how an answer differs from what the document says; empty if it does not.

    A view may answer with another status than its own, as Nova does at some versions.
    """
    answers = described["paths"][case.path][case.method.lower()]["responses"]
    fine = [one for status, one in answers.items() if status != "default"]
    told = fine[0] if response.status_code < 400 else answers["default"]
    schema = told.get("content", {}).get("application/json", {}).get("schema")
    if schema is None or case.method == "HEAD":
        return response.text
    body = response.json()
    validator = Draft202012Validator({**schema, "components": described["components"]})
    return "; ".join(one.message for one in validator.iter_errors(body))


def tried(operation: Any, mode: GenerationMode, run: Callable[[Case], None]) -> None:
    """Make cases of one kind for an operation, and let each be asked."""

    @seed(SEED)
    @settings(
        max_examples=CASES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def each(case: Case) -> None:
        run(case)

    with suppress(Unsatisfiable):  # one that takes nothing cannot be asked wrongly
        each()
