# SPDX-License-Identifier: BSD-2-Clause
"""Answers over HTTP: pages, ways elsewhere, and the headers of all of them."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from .rendering import render
from .values import ROOT
from .visit import Page

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src {}; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _POLICY.format("'self'"),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer, unless it has its own."""


def after(asked: str) -> str:
    """Return where somebody goes who has signed in: to one of our pages."""
    below = asked == ROOT or asked.startswith((f"{ROOT}/", f"{ROOT}?"))
    return asked if below and asked.isprintable() and "\\" not in asked else ROOT


def goes(address: str) -> web.Response:
    """Return what sends a browser to an address."""
    return web.Response(status=303, headers={"Location": address})


def html(page: Page, user: str = "", role: str = "", secret: str = "") -> web.Response:
    """Return a page.

    Parameters
    ----------
    user, role, secret
        Of who has signed in; empty for nobody.
    """
    common = {"user": user, "role": role, "secret": secret}
    text = render(page.template, {**common, **page.values})
    answer = web.Response(
        text=text, status=page.status, content_type="text/html", charset="utf-8"
    )
    if page.paints:
        answer.headers["Content-Security-Policy"] = _POLICY.format("'self' data:")
    return answer
