# SPDX-License-Identifier: BSD-2-Clause
"""Each process is killed during attachments, detachments and deletions.

Each volume ends as what it was or is to be, with its bytes, and the quota is right.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from deaths import Deaths
from installation import Cloud, Town, towns

from support.sampling import SEED

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("MOORAGE_CLOUD_KILLS", "5"))
Towns = tuple[dict[str, Town], Path]


@pytest.fixture(scope="module")
def clusters() -> Iterator[Towns]:
    with towns() as made:
        yield made


@pytest.mark.timeout(60 + 20 * KILLS)
def test_whoever_dies_nothing_is_lost(
    database: str,
    clusters: Towns,
    tmp_path: Path,
    request: pytest.FixtureRequest,
):
    server = request.getfixturevalue("postgres") if "://" in database else None
    cloud = Cloud(tmp_path, database, often=True)
    random = Random(SEED)  # noqa: S311 - which moments
    try:
        with closing(Deaths(cloud, *clusters, random, server)) as deaths:
            deaths.until(KILLS)
            deaths.clear()
    finally:
        cloud.close()
    print(dict(deaths.kills), dict(deaths.ended))  # noqa: T201 - the account
