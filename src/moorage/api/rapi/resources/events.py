# SPDX-License-Identifier: BSD-2-Clause
"""What happens, as it happens."""

from moorage.api.rapi.events import ARGS, Events
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Route

ROUTES = (
    Route(
        "GET",
        "/2/events",
        "Tell what happens, as it happens",
        Events(),
        Role.READ,
        ARGS,
    ),
)
