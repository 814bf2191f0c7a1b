# SPDX-License-Identifier: BSD-2-Clause
"""What scripts are told of the network that a card is in, under Ganeti's names."""

from moorage.protocol import NetworkOf


def words(network: NetworkOf | None) -> dict[str, str | None]:
    """Return variables; nothing for a card in no network."""
    if network is None:
        return {}
    return {
        "NETWORK_NAME": network.name,
        "NETWORK_UUID": network.uuid,
        "NETWORK_SUBNET": network.network,
        "NETWORK_GATEWAY": network.gateway,
        "NETWORK_SUBNET6": network.network6,
        "NETWORK_GATEWAY6": network.gateway6,
        "NETWORK_MAC_PREFIX": network.mac_prefix,
        "NETWORK_TAGS": " ".join(network.tags),
    }
