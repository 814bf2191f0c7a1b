# SPDX-License-Identifier: BSD-2-Clause
"""Around each request: its id, its line in the log, and what is counted of it."""

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from moorage_cloud import tracing

from .counted import count

_LOG = logging.getLogger(__name__)
HEADER = "X-Openstack-Request-Id"


class Traced:
    """Middleware; whatever answers has the request's trace in ``tracing.TRACE``."""

    def __init__(self, answer: Callable[[HttpRequest], HttpResponse]) -> None:
        self._answer = answer

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, and tell of it."""
        began = time.perf_counter()
        trace = tracing.new(request.headers.get(HEADER, ""))
        before = tracing.TRACE.set(trace)
        try:
            response = self._answer(request)
            response[HEADER] = trace.id
            self._tell(request, response, trace, time.perf_counter() - began)
        finally:
            tracing.TRACE.reset(before)
        return response

    def _tell(
        self,
        request: HttpRequest,
        response: HttpResponse,
        trace: tracing.Trace,
        seconds: float,
    ) -> None:
        method, status = request.method or "", response.status_code
        count(method, trace.route, status, seconds)
        told = {
            "method": method,
            "path": request.path,
            "status": status,
            "address": request.META.get("REMOTE_ADDR", ""),
            "seconds": round(seconds, 4),
        }
        _LOG.info("%s %s: %d", method, request.path, status, extra={"told": told})
