# SPDX-License-Identifier: BSD-2-Clause
"""What a provider's ``attach`` prints: a device, and a URI for each hypervisor."""

import pytest

from moorage.errors import Failed
from moorage.storage.command import Where
from moorage.storage.printed import parse_attach


@pytest.mark.requirement("S0-67", "S0-69")
def test_a_device_and_uris_that_keep_their_own_colons() -> None:
    printed = "/dev/san/v1\nkvm:nbd:[::1]:10809:exportname=v1\nxen-pvm:rbd:pool/v1\n"
    assert parse_attach("san", printed) == Where(
        path="/dev/san/v1",
        block=True,
        uris={"kvm": "nbd:[::1]:10809:exportname=v1", "xen-pvm": "rbd:pool/v1"},
    )


@pytest.mark.requirement("S0-70")
@pytest.mark.parametrize("prefix", ["kvm", "KVM", "Kvm"])
def test_a_hypervisor_may_be_written_in_capitals(prefix: str) -> None:
    assert parse_attach("san", f"\n{prefix}:RBD:pool/X").uris == {"kvm": "RBD:pool/X"}


@pytest.mark.requirement("S0-67", "S0-71")
def test_a_provider_of_the_first_interface_prints_a_device_alone() -> None:
    where = parse_attach("san", "/dev/san/v1\n")
    assert where == Where(path="/dev/san/v1", block=True, uris={})


@pytest.mark.requirement("S0-69")
def test_the_first_uri_of_a_hypervisor_counts_and_other_lines_do_not() -> None:
    printed = "/dev/x\nhello\n\nkvm:a:1\nKVM:b:2\n"
    assert parse_attach("san", printed).uris == {"kvm": "a:1"}


@pytest.mark.requirement("S0-72", "S0-73")
@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "printed neither a device nor a URI"),
        ("\n\nhello\n", "printed neither a device nor a URI"),
        ("/dev/x\nkvm:\n", "printed an empty URI for hypervisor 'kvm'"),
        ("\nkvm:a:1\nxen-pvm:\n", "printed an empty URI for hypervisor 'xen-pvm'"),
    ],
)
def test_what_leads_nowhere_is_an_error(printed: str, said: str) -> None:
    with pytest.raises(Failed, match=said):
        parse_attach("san", printed)
