# SPDX-License-Identifier: BSD-2-Clause
"""Django's settings, made of the administrator's (`conf.py`)."""

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .conf import CONF


def database(where: str) -> dict[str, Any]:
    """Return what Django wants to know of a database, as `Conf.database` names it.

    On SQLite a transaction takes the lock when it begins: otherwise two that read first
    and write later refuse each other. A connection to PostgreSQL is kept for a while,
    and looked at before each request: the server may have been started anew.
    """
    if not where.startswith(("postgresql://", "postgres://")):
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": where,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
            },
        }
    parts = urlsplit(where)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or parts.query.removeprefix("host=")),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 10},
    }


def _secret(path: Path) -> str:
    """Return the key that signs sessions; it is made when there is none."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    key = secrets.token_urlsafe(64)
    if path.parent.is_dir():
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(made, "w") as file:
            file.write(key)
    return key


SECRET_KEY = _secret(Path(CONF.key_file))
DATABASES = {"default": database(CONF.database)}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "moorage_cloud",
    "moorage_cloud.identity",
]
AUTH_USER_MODEL = "identity.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "moorage_cloud.urls"
ALLOWED_HOSTS = list(CONF.allowed_hosts)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False
