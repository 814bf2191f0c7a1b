# SPDX-License-Identifier: BSD-2-Clause
"""``/healthcheck``, as oslo.middleware has it: whether requests are worth sending here.

Everybody may ask, and is told nothing of what is inside.
"""

from collections.abc import Iterator
from datetime import timedelta

from django.db import Error
from django.db.models import Max
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from moorage_cloud import tracing
from moorage_cloud.conf import CONF
from moorage_cloud.models import Heartbeat


@require_safe
def healthcheck(request: HttpRequest) -> HttpResponse:
    """Answer 200 and OK, or 503 and the reasons, a line each."""
    tracing.current().route = "/healthcheck"
    reasons = list(_reasons())
    status = 503 if reasons else 200
    response: HttpResponse
    if request.accepts("text/plain") or not request.accepts("application/json"):
        text = "\n".join(reasons or ["OK"])
        response = HttpResponse(text, status=status, content_type="text/plain")
    else:
        told = {"detailed": False, "reasons": reasons or ["OK"]}
        response = JsonResponse(told, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _reasons() -> Iterator[str]:
    try:
        seen = Heartbeat.objects.aggregate(Max("seen"))["seen__max"]
    except Error:
        yield "the database does not answer"
        return
    if seen is None or timezone.now() - seen > timedelta(seconds=CONF.worker_gone):
        yield "no worker is at work"
