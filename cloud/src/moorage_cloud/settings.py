# SPDX-License-Identifier: BSD-2-Clause
"""Django's settings, made of the administrator's (`conf.py`)."""

import os
import secrets
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from .conf import CONF

LIMITS = "-c lock_timeout=20s -c idle_in_transaction_session_timeout=60s"
"""Of a connection to PostgreSQL: a machine that lost its power holds no row for ever.

No transaction lasts while a cluster is asked.
"""


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
    return _postgresql(where)


def _postgresql(where: str) -> dict[str, Any]:
    # Who has SQLite need not load it.
    conninfo = import_module("psycopg.conninfo")
    try:
        given = conninfo.conninfo_to_dict(where)
    except import_module("psycopg").ProgrammingError as error:
        why = str(error).strip()
        raise SystemExit(f"database: {why}") from None
    if "dbname" not in given:
        raise SystemExit("database: it names none")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given.pop("dbname"),
        "USER": given.pop("user", ""),
        "PASSWORD": given.pop("password", ""),
        "HOST": given.pop("host", ""),
        "PORT": given.pop("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 10, "options": LIMITS} | given,
    }


def _secret(path: Path) -> str:
    """Return the key that signs sessions and tokens; it is made when there is none.

    Of processes that start together, the first one's is it.
    """
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    key = secrets.token_urlsafe(64)
    if not path.parent.is_dir():
        return key
    new = path.with_name(f"{path.name}.{os.getpid()}")
    made = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(made, "w") as file:
        file.write(key)
    with suppress(FileExistsError):
        path.hardlink_to(new)
    new.unlink()
    return path.read_text().strip()


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
MIDDLEWARE = ["moorage_cloud.api.wire.traced.Traced"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "moorage_cloud.tracing.JsonLines"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "moorage_cloud": {"level": "INFO"},
        # Each request has a line of its own already.
        "django.request": {"level": "ERROR"},
        # It would write elsewhere.
        "django": {"handlers": [], "propagate": True},
    },
}
ROOT_URLCONF = "moorage_cloud.urls"
ALLOWED_HOSTS = list(CONF.allowed_hosts)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False

if CONF.admin_at:
    # The pages of administrators. What changes something is protected by the pages
    # themselves (csrf_protect); the API has tokens instead, and no cookies.
    INSTALLED_APPS += [
        "django.contrib.admin",
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.staticfiles",
    ]
    MIDDLEWARE += [
        "django.middleware.security.SecurityMiddleware",
        "whitenoise.middleware.WhiteNoiseMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ]
    TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ]
    AUTHENTICATION_BACKENDS = ["moorage_cloud.pages.entry.Administrators"]
    LOGIN_REDIRECT_URL = "/admin/"
    STATIC_URL = "/admin/static/"
    WHITENOISE_USE_FINDERS = True
    CSRF_TRUSTED_ORIGINS = list(CONF.admin_at)
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = all(
        one.startswith("https://") for one in CONF.admin_at
    )
    SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
    SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Strict"
    SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = "/admin/"
    SESSION_EXPIRE_AT_BROWSER_CLOSE = True
    SESSION_COOKIE_AGE = 8 * 3600
