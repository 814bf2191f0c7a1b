# SPDX-License-Identifier: BSD-2-Clause
"""What a web process serves: all of it is loaded before the first request comes."""

from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from moorage.record_types import look_at_types


def application() -> WSGIHandler:
    """Return the application, for several threads."""
    made = get_wsgi_application()
    _ = get_resolver().url_patterns  # loads all that answers
    look_at_types()
    return made
