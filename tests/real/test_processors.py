# SPDX-License-Identifier: BSD-2-Clause
"""What a node says of its guests' processors, asked of a real QEMU that emulates."""

from pathlib import Path

import pytest

from moorage.node.hypervisors.kvm import Kvm
from moorage.node.hypervisors.kvm.accelerator import Accelerators
from moorage.node.hypervisors.kvm.hypervisor import PROGRAM
from moorage.node.hypervisors.kvm.processors import Processors

pytestmark = pytest.mark.real

TCG = {"accel": "tcg"}


@pytest.fixture
def kvm(tmp_path: Path) -> Kvm:
    return Kvm(tmp_path)


async def test_a_node_says_what_it_lacks_of_a_model(kvm: Kvm) -> None:
    """What is switched off does not lack, and what is switched on may."""
    found = await kvm.processor({"cpu_type": "Haswell,hle=off,+avx512f"} | TCG)
    assert {"rtm", "avx512f"} <= {*found.lacking}
    assert "hle" not in found.lacking
    assert found.accelerator == "tcg"
    whole = await kvm.processor({"cpu_type": "Nehalem,+aes"} | TCG)
    assert (whole.lacking, whole.problem, whole.features) == ((), "", ())


async def test_a_guest_without_a_type_has_what_there_is(kvm: Kvm) -> None:
    found = await kvm.processor({"cpu_type": ""} | TCG)
    assert found.lacking == ()
    assert {"aes", "ssse3"} <= {*found.features}
    assert "avx512f" in found.without


async def test_a_model_that_there_is_not(kvm: Kvm) -> None:
    found = await kvm.processor({"cpu_type": "Hasswell"} | TCG)
    assert "unable to find CPU model 'Hasswell'" in found.problem


async def test_the_models_that_guests_can_have(tmp_path: Path) -> None:
    accelerators = Accelerators(tmp_path / "verdicts", PROGRAM, tmp_path / "no-kvm")
    found = await Processors(PROGRAM, accelerators).models()
    assert found.lacking["Nehalem"] == ()
    assert "rtm" in found.lacking["Haswell"]
    assert not {"host", "max", "base", "Nehalem-v1"} & found.lacking.keys()
