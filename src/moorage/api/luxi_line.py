# SPDX-License-Identifier: BSD-2-Clause
"""Lines to guests over LUXI: after the answer, the connection is the guest's.

No job is made: nothing changes, and nobody waits for anything.
"""

import logging
from typing import Any

from moorage import protocol
from moorage.errors import WrongState
from moorage.model import Instance, Node, hvparams
from moorage.model.audit import CONSOLE, SCREEN, TICKET, deed
from moorage.model.caller import Role
from moorage.model.token import Ticket, to_text
from moorage.node.lines import ALWAYS, Line
from moorage.ops.asking import node_tasks
from moorage.protocol.line import GuestLine

from .luxi_caller import CALLER
from .luxi_method import Method
from .luxi_request import ConnectInstance
from .query import Sources

_LOG = logging.getLogger(__name__)


async def open_line(
    at: Sources, wanted: ConnectInstance
) -> tuple[dict[str, Any], Line]:
    """Open a line to a guest, through the agent of its node.

    Raises
    ------
    WrongState
        If it does not run.
    MoorageError
        If its node does not answer, or says why there is none.
    """
    instance, node = _guest(at, wanted.instance)
    config = at.config_store.config
    given = hvparams.filled(instance.hypervisor, node_tasks.hvparams(config, instance))
    asked = GuestLine(
        uuid=instance.uuid,
        name=instance.name,
        hypervisor=instance.hypervisor,
        kind=wanted.kind,
        ticket=wanted.ticket,
        by=CALLER.get().detail,
    )
    line = await at.lines(node, asked, at.config_store.term)
    try:
        await _tell(at, CONSOLE if wanted.kind == "serial" else SCREEN, instance, node)
    except BaseException:
        await line.close()  # nobody is at a guest of whom nothing is told
        raise
    told = {"instance": instance.name, "node": node.name}
    return told | {"by_ticket": not given.get("vnc_password_file")}, line


class DrawTicket(Method, frozen=True):
    """Return a ticket for a guest's serial console, which works on any machine.

    The answer has the ticket, and for how many seconds it can be used, once.
    """

    role = Role.OPERATE
    instance: str

    async def answer(self, at: Sources) -> Any:  # noqa: ANN401
        """Let the guest's node wait for its holder."""
        instance, node = _guest(at, self.instance)
        asked = protocol.DrawTicket(
            uuid=instance.uuid,
            name=instance.name,
            hypervisor=instance.hypervisor,
            address=node.primary_ip,
            by=CALLER.get().detail,
        )
        drawn = await at.nodes.call(node, asked, at.config_store.term, protocol.silent)
        await _tell(at, TICKET, instance, node)
        _LOG.info(
            "a ticket for the console of %s on %s was drawn by %s",
            *(instance.name, node.name, asked.by),
            extra=ALWAYS,
        )
        ticket = Ticket(
            instance.name,
            node.primary_ip,
            drawn.port,
            drawn.fingerprint,
            drawn.secret,
        )
        return {"ticket": to_text(ticket), "lasts": drawn.lasts}


async def _tell(at: Sources, what: str, instance: Instance, node: Node) -> None:
    """Tell the audit log who is let to a guest; it is stored before anybody is."""
    about = f"{instance.name} on {node.name}"
    done = deed(CALLER.get(), at.clock(), what, about=about)
    await at.config_store.commit(None, deeds=[done])


def _guest(at: Sources, word: str) -> tuple[Instance, Node]:
    """Return an instance that should run, and its node.

    Raises
    ------
    WrongState
        If it does not run.
    """
    config = at.config_store.config
    instance = config.instance(word)
    node = config.home(instance)
    if node.offline:
        raise WrongState(
            f"node {node.name} of instance {instance.name} is marked offline",
            hint=f"gnt-instance failover {instance.name}",
        )
    if instance.admin_state != "up":
        raise WrongState(
            f"instance {instance.name} is not running: it has no console",
            hint=f"gnt-instance startup {instance.name}",
        )
    return instance, node
