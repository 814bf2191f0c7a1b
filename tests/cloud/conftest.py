# SPDX-License-Identifier: BSD-2-Clause
"""A database for each test: a copy of one that was migrated once."""

import atexit
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from shutil import copyfile, rmtree
from tempfile import mkdtemp

import pytest

MEMORY = Path("/dev/shm")
HOME = Path(
    mkdtemp(prefix="cloud-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
)
"""In memory: what these tests write need not outlive anything."""
atexit.register(rmtree, HOME, ignore_errors=True)
CONF_FILE = HOME / "cloud.toml"
CONF_FILE.write_text(
    f'database = "{HOME}/template.sqlite"\nkey_file = "{HOME}/key"\n'
    f'metrics_key_file = "{HOME}/metrics-key"\n'
)
os.environ["MOORAGE_CLOUD"] = str(CONF_FILE)
os.environ["DJANGO_SETTINGS_MODULE"] = "moorage_cloud.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402
from docks import Docks  # noqa: E402
from quay import Quay  # noqa: E402
from towns import Towns  # noqa: E402

NUMBERS = count()


@pytest.fixture(scope="session")
def template() -> Path:
    """Return a database with all tables and no rows."""
    made = HOME / "template.sqlite"
    call_command("migrate", verbosity=0)
    connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return made


@pytest.fixture
def database(template: Path) -> Iterator[Path]:
    """Return the test's own database."""
    mine = HOME / f"{next(NUMBERS)}.sqlite"
    copyfile(template, mine)
    connections.settings["default"]["NAME"] = str(mine)
    yield mine
    connection.close()


@pytest.fixture
def docks(database: Path) -> Docks:
    """Return two clusters in memory that see the same storage, and a type for it."""
    assert database.exists()
    return Docks()


@pytest.fixture
def quay(database: Path, tmp_path: Path) -> Iterator[Quay]:
    """Return the service with two clusters behind their doors."""
    assert database.exists()
    with Towns(tmp_path).open(tmp_path) as towns:
        made = Quay(towns)
        yield made
        made.close()
