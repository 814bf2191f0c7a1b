# SPDX-License-Identifier: BSD-2-Clause
"""The choice between KVM and emulation, with stubs of QEMU that behave like machines.

The kernel is a file that any QEMU but the stub would refuse.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from moorage.node.hypervisors.kvm import accelerator
from moorage.node.hypervisors.kvm.accelerator import Accelerators, emulated
from moorage.node.hypervisors.kvm.payload import FIRMWARE_STATUS, WORD, firmware

STUB = f"""#!{sys.executable}
import json, os, sys, time

words = sys.argv[1:]
option = dict(zip(words, words[1:]))
emulated = option["-accel"].startswith("tcg")
with open(__file__ + ".log", "a") as log:
    print("tcg" if emulated else "kvm", "kernel" if "-kernel" in words else "firmware",
          file=log)

def works():
    if "-bios" in words:
        sys.exit({FIRMWARE_STATUS})
    with open(option["-serial"].removeprefix("file:"), "w") as console:
        console.write("{WORD}")
    sys.exit(0)

def says(status):
    print(json.dumps({{"QMP": {{}}}}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)["execute"]
        told = {{"status": status}} if asked == "query-status" else {{}}
        print(json.dumps({{"return": told}}), flush=True)

def internal_error():
    print("KVM internal error. Suberror: 1", file=sys.stderr, flush=True)
    says("internal-error")

def boots_nothing():
    works() if "-bios" in words else internal_error()

def spins():
    works() if "-bios" in words else says("running")

def aborts():
    print("failed to set MSR 0x10a", file=sys.stderr, flush=True)
    os.abort()

def refuses_kernels():
    if "-kernel" in words:
        sys.exit("linux kernel too old to load a ram disk")
    works()

ALWAYS = ("refuses_kernels",)
name = "BEHAVIOUR"
globals()[name if not emulated or name in ALWAYS else "works"]()
"""


class Machine:
    """A machine whose QEMU and whose /dev/kvm are ours."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.qemu, self.device, self.kernel = (top / n for n in ("qemu", "kvm", "vml"))
        self.device.touch()
        self.kernel.write_text("a kernel")

    def behaves(self, how: str) -> None:
        self.qemu.write_text(STUB.replace("BEHAVIOUR", how))
        self.qemu.chmod(0o755)

    def asked(self, patience: float = 60.0) -> Accelerators:
        """Return an agent's view of it; each one is a new process's."""
        file = self.top / "run" / "accelerator.json"
        return Accelerators(file, str(self.qemu), self.device, patience)

    @property
    def runs(self) -> list[str]:
        log = Path(f"{self.qemu}.log")
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine without a kernel of its own."""
    monkeypatch.setattr(accelerator, "_OWN_KERNELS", ())
    return Machine(tmp_path)


async def test_a_kernel_that_boots_is_the_proof_and_is_booted_once(
    machine: Machine,
) -> None:
    machine.behaves("works")
    for _ in range(3):
        found = await machine.asked().verdict(str(machine.kernel))
        assert (found.name, found.proof) == ("kvm", "kernel")
        assert f"it booted {machine.kernel}" in found.reason
    assert machine.runs == ["kvm kernel"]
    assert machine.asked().known() == found


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("internal_error", "QEMU stopped with internal-error while booting"),
        ("boots_nothing", "KVM internal error. Suberror: 1"),
        ("aborts", "QEMU ended with SIGABRT while booting"),
    ],
)
async def test_kvm_that_stops_a_kernel_is_not_used(
    machine: Machine, how: str, words: str
) -> None:
    """Also where it opens, and runs the few bytes of a firmware."""
    machine.behaves(how)
    found = await machine.asked().verdict(str(machine.kernel))
    assert (found.name, found.proof) == ("tcg", "kernel")
    assert words in found.reason
    assert machine.runs == ["kvm kernel"]


async def test_kvm_that_spins_for_ever_is_not_used(machine: Machine) -> None:
    """The same kernel boots when it is emulated, so it is not to blame."""
    machine.behaves("spins")
    found = await machine.asked(patience=3.0).verdict(str(machine.kernel))
    assert (found.name, found.proof) == ("tcg", "kernel")
    assert "did not end in 3 s" in found.reason
    assert machine.runs == ["kvm kernel", "tcg kernel"]


async def test_a_kernel_that_boots_nowhere_is_no_witness(machine: Machine) -> None:
    machine.behaves("refuses_kernels")
    found = await machine.asked().verdict(str(machine.kernel))
    assert (found.name, found.proof) == ("kvm", "firmware")
    assert "there was no kernel to boot" in found.reason


async def test_without_kvm_nothing_is_tried(machine: Machine) -> None:
    machine.behaves("works")
    machine.device.unlink()
    assert machine.asked().known() == await machine.asked().verdict("")
    assert machine.asked().known().reason == f"{machine.device} is not there"
    assert machine.runs == []


async def test_without_qemu_guests_are_emulated_and_the_reason_says_why(
    machine: Machine,
) -> None:
    found = await machine.asked().verdict(str(machine.kernel))
    assert found.name == "tcg"
    assert "No such file or directory" in found.reason


async def test_a_kernel_counts_more_than_a_firmware(machine: Machine) -> None:
    """What was believed for want of a kernel is corrected by the first one."""
    machine.behaves("boots_nothing")
    asked = machine.asked()
    assert (await asked.verdict()).proof == "firmware"
    assert (await asked.verdict()).name == "kvm"
    assert (await asked.verdict(str(machine.kernel))).name == "tcg"
    assert (await asked.verdict()).name == "tcg"


async def test_another_qemu_is_looked_at_anew(machine: Machine) -> None:
    machine.behaves("aborts")
    assert (await machine.asked().verdict(str(machine.kernel))).name == "tcg"
    machine.behaves("works")
    assert machine.asked().known() is None
    assert (await machine.asked().verdict(str(machine.kernel))).name == "kvm"


async def test_it_is_looked_at_again_when_somebody_asks(machine: Machine) -> None:
    machine.behaves("works")
    asked = machine.asked()
    await asked.verdict(str(machine.kernel))
    again = await asked.look_again()
    assert (again.name, again.proof) == ("kvm", "kernel")
    assert machine.runs == ["kvm kernel"] * 2


async def test_the_first_guest_can_convict_or_acquit(machine: Machine) -> None:
    machine.behaves("works")
    asked = machine.asked()
    await asked.verdict()
    asked.watched("", "internal-error")
    assert asked.known().reason == "QEMU stopped the first guest with internal-error"
    assert (await asked.verdict()).name == "tcg"
    asked.watched("", "")
    assert (await asked.verdict()).proof == "guest"


async def test_many_guests_at_once_need_one_trial(machine: Machine) -> None:
    machine.behaves("works")
    asked = machine.asked()
    wanted = [asked.verdict(str(machine.kernel)) for _ in range(5)]
    assert {one.name for one in await asyncio.gather(*wanted)} == {"kvm"}
    assert machine.runs == ["kvm kernel"]


async def test_a_garbled_record_costs_a_trial(machine: Machine) -> None:
    machine.behaves("works")
    asked = machine.asked()
    await asked.verdict()
    (machine.top / "run" / "accelerator.json").write_bytes(b"")
    assert asked.known() is None
    assert (await asked.verdict()).name == "kvm"


def test_the_firmware_speaks_at_the_reset_vector() -> None:
    image = firmware()
    assert len(image) == 0x10000
    assert image[0xFFF0:0xFFF7] == bytes.fromhex("ba0105b010eef4")


def test_the_cache_of_translated_code_is_bounded() -> None:
    assert [emulated(m) for m in (64, 1024, 9999)] == [
        "tcg,tb-size=32,thread=multi",
        "tcg,tb-size=256,thread=multi",
        "tcg,tb-size=512,thread=multi",
    ]
