# SPDX-License-Identifier: BSD-2-Clause
"""What an instance had when it was exported, in the words of a request to make it here.

What this cluster does not know, or has in use, is left away.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from moorage import backend
from moorage.errors import BadInput
from moorage.hypervisors import KVM
from moorage.jobs import View
from moorage.model import Config, Network, Nic, hvparams, hvscreen
from moorage.model.export import Dump, Exported
from moorage.model.networks import outside
from moorage.model.objects import reuses
from moorage.ops.guests.nics import POOL

from . import trust

_OWN = ("mac", "ip", "name")
"""What a card is described by, besides its parameters."""


def disk(
    dump: Dump,
    given: Mapping[str, Any],
    template: str | None,
    what: str,
    *,
    trusted: bool,
) -> dict[str, Any]:
    """Return the description of a disk: as asked for, and else as it was.

    Parameters
    ----------
    template
        For a disk that is asked for in none, and in no storage pool.
    trusted
        Whether the parameters of the export are taken, too.

    Raises
    ------
    BadInput
        If the dump does not fit in it.
    """
    if given.get("adopt") or reuses(given):
        raise BadInput(f"{what}: what is imported adopts nothing")
    size = given.get("size") or dump.size
    if isinstance(size, int) and size < dump.size:
        raise BadInput(
            f"{what} has {dump.size} MiB in the export, not {size}",
            hint=f"size={dump.size}M, or leave the size out",
        )
    if given.get("pool"):
        return {"mode": dump.mode, **given, "size": size}
    wanted = given.get("dev_type") or template or dump.dev_type
    kept = trust.disk(dump, trusted=trusted) if wanted == dump.dev_type else {}
    return {"mode": dump.mode, **kept, **given, "dev_type": wanted, "size": size}


def left_of_disk(
    dump: Dump, given: Mapping[str, Any], template: str | None, number: int
) -> Iterator[str]:
    """Yield a sentence on what is not taken of a disk that is made as it was."""
    wanted = given.get("dev_type") or template or dump.dev_type
    if wanted == dump.dev_type and not given.get("pool"):
        yield from trust.left_of_disk(dump, given, number)


def hypervisor(view: View, told: Exported) -> str:
    """Return its hypervisor; the cluster's first one where that is not enabled."""
    enabled = view.config.cluster.enabled_hypervisors
    return told.hypervisor if told.hypervisor in enabled else enabled[0]


def backend_parameters(view: View, told: Exported) -> dict[str, Any]:
    """Return backend parameters that there are here, and that the cluster lacks."""
    default = view.config.cluster.beparams.get("default", {})
    usual = {**backend.DEFAULTS, **default}
    own = backend.aliased(told.beparams)
    return {
        name: value
        for name, value in own.items()
        if name in backend.PARAMETERS and usual.get(name) != value
    }


CLOSED = {"vnc_bind_address": "", "vga": "std"}
"""A screen without a port."""


def hypervisor_parameters(view: View, told: Exported) -> dict[str, Any]:
    """Return hypervisor parameters that kvm has here, and that the cluster lacks.

    A screen that was open to everybody, as Ganeti allows, is one without a port here.
    """
    known = hvparams.filled(KVM, view.config.cluster.hvparams.get(KVM, {}))
    if told.hypervisor != KVM:
        return {}
    kept = {
        name: value
        for name, value in told.hvparams.items()
        if name in known and value not in (known[name], "", None)
    }
    screen = hvparams.Parameters(
        vnc_bind_address=str(kept.get("vnc_bind_address", "")),
        vnc_password_file=str(kept.get("vnc_password_file", "")),
    )
    if hvscreen.is_open(screen):
        kept |= CLOSED
    return kept


def card(config: Config, nic: Nic, taken: set[str]) -> dict[str, Any]:
    """Return a card as it was, in its network if that is here.

    An address that an instance of the cluster has is made anew.
    """
    own: Mapping[str, Any] = asdict(nic)
    found = {key: own[key] for key in _OWN} | {"mac": nic.mac}
    if nic.mac in taken:
        found["mac"] = None
    if nic.network and config.knows(Network, nic.network):
        network = config.network(nic.network)
        held = config.addresses_in(network) | outside(network)
        ip = POOL if nic.ip in held else nic.ip
        return found | {"network": network.name, "ip": ip}
    return found | {key: one for key, one in nic.nicparams.items() if one}
