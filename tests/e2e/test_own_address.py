# SPDX-License-Identifier: BSD-2-Clause
"""Where an agent says that it is, on this machine."""

import socket
from contextlib import suppress
from ipaddress import ip_address

import pytest

from moorage.daemons import own_address
from moorage.errors import BadInput, Failed


def test_a_name_is_resolved_once_and_for_all() -> None:
    assert ip_address(own_address.resolved("localhost")).is_loopback
    assert own_address.resolved("192.0.2.7") == "192.0.2.7"
    with pytest.raises(BadInput, match="is the name of none"):
        own_address.resolved("no.such.invalid")


def test_who_listens_everywhere_says_where_others_reach_it() -> None:
    """It is an address of this machine, and not the machine's own talk."""
    with suppress(Failed):  # of a machine without a network
        found = own_address.told("0.0.0.0")  # noqa: S104
        told = ip_address(found)
        assert not any((told.is_loopback, told.is_unspecified, told.is_link_local))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((found, 0))


def test_who_listens_at_one_address_says_that_one() -> None:
    assert own_address.told("127.0.0.1") == "127.0.0.1"
    assert own_address.told("::1") == "::1"
