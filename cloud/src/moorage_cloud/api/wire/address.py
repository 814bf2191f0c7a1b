# SPDX-License-Identifier: BSD-2-Clause
"""Where clients are told to go."""

from django.http import HttpRequest

from moorage_cloud.conf import CONF


def address(request: HttpRequest, path: str | None = None) -> str:
    """Return where clients reach a path, or this request itself if none is given.

    It begins as the settings say (``url``), else as the request did: then Host, which
    is anybody's, and what stands in front decide of what clients are told.

    Parameters
    ----------
    path
        From the root of the site, such as ``/volume/v3``, or ``?`` with a query for
        this request with another one.
    """
    told = request.build_absolute_uri(path)
    if not CONF.url:
        return told
    _scheme, _, _host, rest = told.split("/", 3)
    return f"{CONF.url.rstrip('/')}/{rest}"
