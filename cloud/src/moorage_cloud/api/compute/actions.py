# SPDX-License-Identifier: BSD-2-Clause
"""What is done to a server by an action; its cluster does it by and by."""

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.models import Server

from .shapes import Nothing, Reboot

routes = Routes()
ACTION = "/servers/{server_id}/action"
RULE = "os_compute_api:servers"


@routes("POST", ACTION, action="os-start", rule=f"{RULE}:start", status=202)
def start(call: Call, server_id: str, body: Nothing) -> None:
    """Start a server; one that runs goes on."""
    del body
    verbs.set_power(call.who, call.server(server_id), Server.Action.START)


@routes("POST", ACTION, action="os-stop", rule=f"{RULE}:stop", status=202)
def stop(call: Call, server_id: str, body: Nothing) -> None:
    """Stop a server: its guest is asked to power down, and has a while for it."""
    del body
    verbs.set_power(call.who, call.server(server_id), Server.Action.STOP)


@routes("POST", ACTION, action="reboot", rule=f"{RULE}:reboot", status=202)
def reboot(call: Call, server_id: str, body: Reboot) -> None:
    """Reset a server's machine, or stop and start it."""
    hard = body.type.upper() == "HARD"
    action = Server.Action.HARD_REBOOT if hard else Server.Action.REBOOT
    verbs.set_power(call.who, call.server(server_id), action)
