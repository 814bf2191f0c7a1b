# SPDX-License-Identifier: BSD-2-Clause
"""Hypervisor parameters: slips are refused, Ganeti's others are passed over."""

import pytest

from moorage.errors import BadInput
from moorage.model.hvparams import check


def test_a_slip_is_refused_with_what_was_meant():
    with pytest.raises(
        BadInput, match="no hypervisor parameter 'kernel_pat'"
    ) as caught:
        check("kvm", {"kernel_pat": "/boot/vmlinuz"})
    assert caught.value.hint == "did you mean kernel_path?"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"boot_order": "floppy"}, "boot_order 'floppy' is none of"),
        ({"migration_port": "many"}, "hypervisor parameters of kvm"),
        ({"machine_version": "pc-i440fx-7.2"}, "not a version of q35"),
    ],
)
def test_values_that_kvm_cannot_honour_are_refused(given, words):
    with pytest.raises(BadInput, match=words):
        check("kvm", given)


@pytest.mark.parametrize(
    "given", [{"vnc_bind_address": "127.0.0.1"}, {"kernel_path": "default"}, {}]
)
def test_what_ganeti_knows_is_accepted(given):
    check("kvm", given)


def test_other_hypervisors_take_anything():
    check("fake", {"colour": "blue"})
