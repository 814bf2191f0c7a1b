# SPDX-License-Identifier: BSD-2-Clause
"""A database for each test: a copy of one that was migrated once.

Tests run on SQLite, and once more on PostgreSQL (marked as slow). Those about races,
rows and migrations do in each run, one in MOORAGE_ONE_IN of the other modules does
(others each time; ``make databases``: all). Some never do: they are about the wire, or
take long for other reasons.
"""

import atexit
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
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
    'admin_at = ["http://testserver"]\n'
    f'metrics_key_file = "{HOME}/metrics-key"\n'
)
os.environ["MOORAGE_CLOUD"] = str(CONF_FILE)
os.environ["DJANGO_SETTINGS_MODULE"] = "moorage_cloud.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from docks import Docks  # noqa: E402
from quay import Quay  # noqa: E402
from towns import Towns  # noqa: E402
from which_database import go_to  # noqa: E402

from support.postgres import Postgres, programs  # noqa: E402
from support.sampling import ONE_IN, SEED  # noqa: E402

NUMBERS = count()
ON_SQLITE_ALONE = {
    *("test_clients", "test_clients_further", "test_cost", "test_each_step"),
    *(
        "test_absent",
        "test_openapi",
        "test_power",
        "test_schema",
        "test_stateful",
        "test_steps",
    ),
    *("test_wire", "test_wire_rules"),
    "test_restored",  # which puts back a file
}
OF_DATABASES = {
    *("test_data", "test_deaths", "test_family", "test_made_anew", "test_migrations"),
    *("test_races", "test_rows", "test_several_workers", "test_settings"),
    "test_worker",
}
"""Modules about what the two databases do differently: they run on both."""
BOTH = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = metafunc.definition.iter_markers("parametrize")
    own = any(mark.args[0] == "database" for mark in marks)
    if own or "database" not in metafunc.fixturenames:
        return
    some = BOTH if _runs_on_both(Path(metafunc.module.__file__).stem) else BOTH[:1]
    metafunc.parametrize("database", some, indirect=True)


def _runs_on_both(module: str) -> bool:
    """Whether the tests of a module run on PostgreSQL, too, this time."""
    if module in ON_SQLITE_ALONE or module in OF_DATABASES:
        return module in OF_DATABASES
    drawn = Random(f"{SEED} {module}").randrange(ONE_IN)  # noqa: S311
    return drawn == 0


@pytest.fixture(scope="session")
def template() -> Path:
    """Return a database with all tables and no rows."""
    made = HOME / "template.sqlite"
    go_to(str(made))
    call_command("migrate", verbosity=0)
    connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return made


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Return a server whose database ``template`` has all tables and no rows."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL's server is not installed")
    made = Postgres(found)
    try:
        made.make("template")
        go_to(made.url("template"))
        call_command("migrate", verbosity=0)
        connection.close()
        yield made
    finally:
        made.close()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the test's own database, as settings name it; this process uses it."""
    number = next(NUMBERS)
    if getattr(request, "param", "sqlite") == "sqlite":
        mine = str(HOME / f"{number}.sqlite")
        copyfile(request.getfixturevalue("template"), mine)
        go_to(mine)
        yield mine
    else:
        server: Postgres = request.getfixturevalue("postgres")
        server.make(f"test{number}", like="template")
        go_to(server.url(f"test{number}"))
        yield server.url(f"test{number}")
    connection.close()


@pytest.fixture
def docks(database: str) -> Docks:
    """Return two clusters in memory that see the same storage, and a type for it."""
    assert database
    return Docks()


@pytest.fixture
def quay(database: str, tmp_path: Path) -> Iterator[Quay]:
    """Return the service with two clusters behind their doors."""
    assert database
    with Towns(tmp_path).open(tmp_path) as towns:
        made = Quay(towns)
        yield made
        made.close()
