# SPDX-License-Identifier: BSD-2-Clause
"""What ``moorage`` says when a file or a directory cannot be used; where it builds."""

from pathlib import Path

import pytest

from moorage.cli import moorage
from moorage.cli.main import run
from moorage.cli.tour import guide
from moorage.testing.guest_image import usual_place


@pytest.mark.parametrize(
    "words",
    [
        ["up", "--hypervisor", "sim", "/etc/passwd/x"],
        ["up", "--hypervisor", "sim", "/proc/x"],
        ["up", "--hypervisor", "sim", f"/tmp/{'n' * 300}"],
        ["down", "/etc/passwd/x"],
        ["env", f"/tmp/{'n' * 300}"],
        ["agent", "/etc/passwd/x"],
    ],
)
def test_a_place_that_cannot_be_used_is_told_in_a_sentence(
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["moorage", *words])
    assert run(moorage.PROGRAM) == 1
    told = capsys.readouterr().err
    assert "unhandled" not in told
    assert "Traceback" not in told
    assert words[-1][:20] in told


def test_settings_that_are_none_are_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent.json").write_text('{"port": "many"')
    monkeypatch.setattr("sys.argv", ["moorage", "agent", str(tmp_path)])
    assert run(moorage.PROGRAM) == 1
    assert "agent.json does not hold settings" in capsys.readouterr().err


def test_an_agent_has_no_hypervisor_that_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent.json").write_text('{"hypervisor": "xen"}')
    monkeypatch.setattr("sys.argv", ["moorage", "agent", str(tmp_path)])
    assert run(moorage.PROGRAM) == 1
    assert "there is no hypervisor 'xen': kvm and fake are known" in (
        capsys.readouterr().err
    )


def test_the_guest_is_built_where_it_belongs(tmp_path: Path) -> None:
    """Never in the directory where somebody happens to stand."""
    home = {"HOME": str(tmp_path)}
    assert usual_place({"MOORAGE_GUEST": "/srv/guest", **home}) == Path("/srv/guest")
    place = usual_place(home)
    checkout = Path(moorage.__file__).parents[3]
    assert place in (
        checkout / ".build/guest",
        tmp_path / ".cache/moorage/guest",
    )


def test_the_last_line_of_the_tour_can_be_typed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", str(place))
    assert Path(guide.program()).name == "moorage"
    assert Path(guide.program()).is_absolute()
    (place / "moorage").write_text("#!/bin/sh\n")
    (place / "moorage").chmod(0o755)
    assert guide.program() == "moorage"
