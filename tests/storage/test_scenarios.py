# SPDX-License-Identifier: BSD-2-Clause
"""Every template, every verb: facts and answers in, commands and a result out.

One JSON file a case. A template that is new needs a class, a line in the registry, and
a folder of such files; the last test proves it.
"""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.disk_templates import TemplateFacts
from moorage.errors import CommandFailed, MoorageError
from moorage.model import Disk, Provider
from moorage.storage import (
    TEMPLATES,
    Can,
    Capabilities,
    Command,
    Holder,
    Mirror,
    Outcome,
    Output,
    Site,
    Steps,
    Template,
    VolumeRequest,
    Where,
    nothing,
    template_named,
)

_EXTSTORAGE = "/usr/share/ganeti/extstorage"
SITE = Site(
    node="node1",
    settings={
        "file_storage_dir": "/srv/file",
        "shared_file_storage_dir": "/srv/sharedfile",
        "gluster_storage_dir": "/srv/gluster",
        "volume_group_name": "xenvg",
    },
    providers={
        "nas": Provider(
            name="nas",
            path=f"{_EXTSTORAGE}/nas",
            optional=("snapshot", "open", "close"),
        ),
        "plain": Provider(name="plain", path=f"{_EXTSTORAGE}/plain"),
        "broken": Provider(
            name="broken",
            path=f"{_EXTSTORAGE}/broken",
            problem=f"File 'grow' under path '{_EXTSTORAGE}/broken' is not executable",
        ),
    },
    holders=(Holder("node1", "10.0.0.1"), Holder("node2", "10.0.0.2")),
)
_PLAIN = Command(())
HERE = Path(__file__).parent


def found(folder: Path) -> list[Any]:
    """Return a test parameter for each file, marked with its requirements."""
    return [_parameter(path) for path in sorted(folder.glob("*/*.json"))]


def _parameter(path: Path) -> Any:
    case = json.loads(path.read_text())
    marks = [pytest.mark.requirement(*case.get("requirements", []))]
    return pytest.param(case, id=f"{path.parent.name}.{path.stem}", marks=marks)


def play(case: dict[str, Any]) -> dict[str, Any]:
    """Return the commands that ran, and the result or error."""
    told = iter(case.get("answers", []))
    ran: list[dict[str, Any]] = []
    try:
        result = _result(_played(case, told, ran))
    except MoorageError as error:
        result = {"error": {"code": error.code, "message": error.message}}
    assert list(told) == [], "not every answer was asked for"
    return {"commands": ran, **result}


def _played(case: dict[str, Any], told: Any, ran: list[dict[str, Any]]) -> Any:
    here = replace(SITE, node=case.get("on", SITE.node))
    template = template_named(case["template"])(here)
    disk = msgspec.convert(case["disk"], Disk)
    verb = getattr(template, case["verb"])
    steps = verb(disk, *case.get("args", []), **case.get("kwargs", {}))
    try:
        command = next(steps)
        while True:
            ran.append(_shown(command))
            command = _answered(steps, next(told))
    except StopIteration as stop:
        return stop.value


def _answered(steps: Any, answer: Any) -> Command:
    if isinstance(answer, str):
        return steps.send(Output(stdout=answer))
    if "fails" in answer:
        return steps.throw(CommandFailed(answer["fails"]))
    return steps.send(Output(**answer))


def _shown(command: Command) -> dict[str, Any]:
    """Return what of a command differs from the defaults."""
    values, plain = _json(command), _json(_PLAIN)
    return {key: value for key, value in values.items() if value != plain[key]}


def _json(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def _result(value: Any) -> dict[str, Any]:
    if isinstance(value, Where):
        return {"where": _json(value)}
    return {"result": value.value if isinstance(value, Outcome) else value}


def expected(case: dict[str, Any]) -> dict[str, Any]:
    said = ("commands", "result", "where", "error")
    return {key: case[key] for key in said if key in case}


@pytest.mark.parametrize("case", found(HERE / "scenarios"))
def test_scenario(case: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="moorage")
    assert play(case) == expected(case)
    assert [record.message for record in caplog.records] == case.get("log", [])


def test_every_template_has_scenarios() -> None:
    assert {path.name for path in (HERE / "scenarios").iterdir()} == set(TEMPLATES)


# -- a template of tomorrow ------------------------------------------------------------


class Tape(Template):
    """A tape robot: one new file, one line in the registry, one folder of scenarios."""

    name = "tape"
    capabilities = Capabilities(
        TemplateFacts(name="tape", mirror=Mirror.EXTERNAL),
        can=Can.CREATE,
    )

    @classmethod
    def logical_id(cls, born: VolumeRequest) -> tuple[Any, ...]:
        return ("robot", f"{born.unique}.tape.disk{born.index}")

    def create(self, disk: Disk) -> Steps[Outcome]:
        there = yield Command(("mtx", "status", disk.volume), check=False)
        if not there.code:
            return Outcome.UNCHANGED
        yield Command(("mtx", "load", disk.volume))
        return Outcome.CHANGED

    def attach(self, disk: Disk) -> Steps[Where]:
        told = yield Command(("mtx", "where", disk.volume))
        return Where(path=told.stdout.strip(), block=True)

    def detach(self, disk: Disk) -> Steps[Outcome]:
        del disk
        return nothing()


@pytest.mark.parametrize("case", found(HERE / "tomorrow"))
def test_a_new_template_is_one_class_and_a_folder(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEMPLATES, Tape.name, Tape)
    assert play(case) == expected(case)
