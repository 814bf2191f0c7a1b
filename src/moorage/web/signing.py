# SPDX-License-Identifier: BSD-2-Clause
"""What somebody shows who signs in, and whether a form is from a page of this door."""

from base64 import b64encode
from collections.abc import Mapping

from aiohttp import web

from moorage.api.rapi.refusals import HttpError


def authorization(words: Mapping[str, str]) -> str:
    """Return a user's password, or a token, as a header ``Authorization``.

    Raises
    ------
    HttpError
        If there is neither.

    >>> authorization({"name": "anna", "password": "secret"})
    'Basic YW5uYTpzZWNyZXQ='
    """
    name, password = words.get("name", "").strip(), words.get("password", "")
    if not password:
        raise HttpError(401)
    if name:
        return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"
    return f"Bearer {password.strip()}"


def came_from_here(request: web.Request) -> None:
    """Raise `HttpError` if a browser says that another site sent a form.

    What says nothing of the kind is no browser of these years, and has no cookie.
    """
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin")
    elsewhere = origin is not None and origin.partition("://")[2] != request.host
    if site not in ("same-origin", "none") or elsewhere:
        raise HttpError(403, "The form came from another site: nothing was done.")
