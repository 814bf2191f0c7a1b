# SPDX-License-Identifier: BSD-2-Clause
"""Real scripts as hooks: their order, their variables, and what they say."""

from pathlib import Path

from moorage.node.extensions.hooks import Hooks


def script(directory: Path, name: str, text: str, mode: int = 0o755) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


async def test_scripts_run_in_the_order_of_their_names(tmp_path: Path) -> None:
    at, out = tmp_path / "hooks" / "instance-start-pre.d", tmp_path / "out"
    for name in ("20b", "10a", "30-c_C", "bad.name", ".hidden"):
        script(at, name, f'echo "$(basename $0) $GANETI_OP_CODE $PATH" >> {out}')
    script(at, "15off", "exit 1", 0o644)
    hooks = Hooks(tmp_path / "hooks")
    runs = await hooks.run("instance-start-pre.d", {"GANETI_OP_CODE": "OP_X"})
    path = "/sbin:/bin:/usr/sbin:/usr/bin"
    lines = [f"{name} OP_X {path}" for name in ("10a", "20b", "30-c_C")]
    assert out.read_text().splitlines() == lines
    assert [one.problem for one in runs] == ["", "", ""]
    assert await hooks.run("instance-stop-pre.d", {}) == []


async def test_one_that_fails_says_what_it_printed_and_the_next_one_runs(
    tmp_path: Path,
) -> None:
    at = tmp_path / "hooks" / "node-add-pre.d"
    script(at, "1", "echo the rack; echo is full >&2; exit 3")
    script(at, "2", "cat; env | grep -v ^GANETI_ | sort | head -n 1; exit 1")
    first, second = await Hooks(tmp_path / "hooks").run(at.name, {})
    assert first.script == "node-add-pre.d/1"
    assert first.problem == "failed (exited with exit code 3): is full; the rack"
    assert second.problem == "failed (exited with exit code 1): LC_ALL=C"


async def test_a_script_that_others_may_write_to_is_not_run(tmp_path: Path) -> None:
    at, mark = tmp_path / "hooks" / "node-add-pre.d", tmp_path / "mark"
    script(at, "1", f"touch {mark}", 0o777)
    (run,) = await Hooks(tmp_path / "hooks").run(at.name, {})
    assert run.problem.startswith("it is not run: ")
    assert not mark.exists()
