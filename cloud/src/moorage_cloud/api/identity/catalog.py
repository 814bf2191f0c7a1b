# SPDX-License-Identifier: BSD-2-Clause
"""Where the services are, from the address at which somebody asks."""

from collections.abc import Mapping

from django.http import HttpRequest

from moorage_cloud.api.wire.address import address

from .bodies import Address, ServiceAddresses

REGION = "RegionOne"
PLACES: Mapping[str, tuple[str, str]] = {
    "identity": ("keystone", "identity/v3"),
    "block-storage": ("cinder", "volume/v3"),
    "compute": ("nova", "compute/v2.1"),
    "image": ("glance", "image"),
}
"""By type: what clients call a service, and where it is."""


def catalog(request: HttpRequest, project: str) -> list[ServiceAddresses]:
    """Return all services; of volumes, the address has the project of the token."""
    return [
        ServiceAddresses(
            id=kind,
            type=kind,
            name=name,
            endpoints=[
                Address(
                    id=f"{kind}-{interface}",
                    interface=interface,
                    region=REGION,
                    region_id=REGION,
                    url=address(request, "/" + _place(place, project)),
                )
                for interface in ("public", "internal", "admin")
            ],
        )
        for kind, (name, place) in PLACES.items()
    ]


def _place(place: str, project: str) -> str:
    return f"{place}/{project}" if project and place == "volume/v3" else place
