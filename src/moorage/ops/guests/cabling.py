# SPDX-License-Identifier: BSD-2-Clause
"""Where network cards can be, and what they are connected to there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, View
from moorage.model import Config, Nic, Node, NodeGroup, nicparams
from moorage.model.nicparams import BY_IP, ROUTED, NicParams

_NONE = ("", "none")


def hold_named(config: Config, given: Iterable[Mapping[str, Any]]) -> Iterator[Lock]:
    """Share the networks that a request names."""
    names = dict.fromkeys(str(one["network"]) for one in given if one.get("network"))
    for name in names:
        if name not in _NONE:
            yield Lock("network", config.network(name).uuid, shared=True)


def check_connected(config: Config, group: NodeGroup, nics: Iterable[Nic]) -> None:
    """Raise `WrongState` unless a group is connected to the networks of cards."""
    for nic in nics:
        if nic.network and nic.network not in group.networks:
            name = config.network(nic.network).name
            raise WrongState(
                f"network '{name}' is not connected to node group {group.name}",
                hint=f"gnt-network connect {name} {group.name}",
                network=name,
                group=group.name,
            )


def warnings(view: View, nics: Iterable[Nic]) -> Iterator[str]:
    """Yield a sentence for each card that is connected to nothing."""
    cluster = view.config.cluster
    for number, nic in enumerate(nics):
        own = nicparams.over(nicparams.defaults(cluster), nic.nicparams).params()
        if not nic.network and not own.connected:
            yield (
                f"network card {number} names no bridge and is connected to nothing; "
                f"--net {number}:link=BRIDGE names one"
            )


def check_routed(config: Config, node: Node, nics: Iterable[Nic]) -> None:
    """Raise `BadInput` for a routed card without an address."""
    group = config.group(node.group)
    for number, nic in enumerate(nics):
        params = nicparams.filled(config.cluster, group, nic)
        if params.mode == ROUTED and not nic.ip:
            raise BadInput(
                f"network card {number} is routed, and has no IP address",
                hint=f"--net {number}:ip=ADDRESS",
            )


def check_filtered(config: Config, node: Node, nics: Iterable[Nic]) -> bool:
    """Return whether one of some cards is held to anything on a node.

    Raises
    ------
    BadInput
        If one is to be held to its IP address, and has none; or cannot be held there.
    """
    group, found = config.group(node.group), False
    for number, nic in enumerate(nics):
        params = nicparams.filled(config.cluster, group, nic)
        if not params.connected or not params.filter:
            continue
        found = True
        try:
            nicparams.check_whole(params)
        except BadInput as error:
            what = f"network card {number}: {error.message}"
            raise BadInput(what, hint=error.hint) from None
        if params.filter == BY_IP and not nic.ip:
            raise BadInput(
                f"network card {number} is held to its IP address (filter={BY_IP}), "
                "and has none",
                hint=f"--net {number}:ip=ADDRESS",
            )
    return found


def default_cards(config: Config) -> list[dict[str, Any]]:
    """Return the cards of an instance that nobody described: one, if it has a cable."""
    connected = NicParams(**nicparams.defaults(config.cluster)).connected
    routed = nicparams.defaults(config.cluster)["mode"] == ROUTED
    return [{}] if connected and not routed else []
