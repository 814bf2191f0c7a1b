# SPDX-License-Identifier: BSD-2-Clause
"""What an administrator sets, as Django and libpq get it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from moorage_cloud import settings

on_postgresql = pytest.mark.parametrize(
    "database", [pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)


def test_all_that_libpq_knows_can_stand_in_the_name_of_a_database():
    told = settings.database(
        "postgresql://cloud:p%40ss@db.example.org:6432/c?sslmode=verify-full"
    )
    named = {name: told[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    assert named == {
        "NAME": "c",
        "USER": "cloud",
        "PASSWORD": "p@ss",
        "HOST": "db.example.org",
        "PORT": "6432",
    }
    assert told["OPTIONS"]["sslmode"] == "verify-full"
    assert (
        settings.database("postgresql:///c?host=/run/postgresql")["HOST"]
        == "/run/postgresql"
    )


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("postgresql://db.example.org", "it names none"),
        ("postgresql://h/c?sslmod=require", 'invalid URI query parameter: "sslmod"'),
    ],
)
def test_what_names_no_database_is_refused(where: str, why: str):
    with pytest.raises(SystemExit) as refused:
        settings.database(where)
    assert str(refused.value) == f"database: {why}"  # and not the password


def test_processes_that_start_together_have_one_key(tmp_path: Path):
    named, key = tmp_path / "cloud.toml", tmp_path / "key"
    named.write_text(f'database = "{tmp_path}/db"\nkey_file = "{key}"\n')
    program = "from moorage_cloud.settings import SECRET_KEY; print(SECRET_KEY)"
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "MOORAGE_CLOUD": str(named)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    keys = {one.communicate()[0].strip() for one in begun}
    assert keys == {key.read_text().strip()}
    assert key.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [named, key]


@on_postgresql
def test_nobody_holds_a_row_for_ever(database: str):
    assert database
    with connection.cursor() as cursor:
        limits = {}
        for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
            cursor.execute(f"SHOW {name}")
            limits[name] = cursor.fetchone()[0]
    assert limits == {
        "lock_timeout": "20s",
        "idle_in_transaction_session_timeout": "1min",
    }
