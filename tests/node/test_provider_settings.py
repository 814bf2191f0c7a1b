# SPDX-License-Identifier: BSD-2-Clause
"""What an administrator adds to a provider's scripts on a node."""

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import CommandFailed, Failed
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import Images
from moorage.storage import Command
from moorage.storage.provider import SCRIPTS, usable


class Place:
    """A node with one provider, whose scripts show their environment."""

    def __init__(self, top: Path) -> None:
        self.provider = top / "ext" / "zfs"
        self.provider.mkdir(parents=True)
        for name in SCRIPTS:
            path = self.provider / name
            path.write_text("#!/bin/sh\nenv\nsleep ${NAP:-0}\n")
            path.chmod(0o755)
        (self.provider / "parameters.list").touch()
        self.settings = top / "providers"
        self.settings.mkdir(mode=0o700)
        images = Images("node1", top / "none")
        providers = Providers([top / "ext"], self.settings)
        self.machine = LocalMachine(top / "log", providers, [], images)

    def say(self, **content: Any) -> Path:
        path = self.settings / "zfs.json"
        path.write_text(json.dumps(content))
        path.chmod(0o600)
        return path

    async def run(self, script: str = "attach", **env: str) -> dict[str, str]:
        words = (f"{self.provider}/{script}",)
        command = Command(words, env=env, cwd=str(self.provider))
        told = await self.machine.run(command, 60)
        return dict(line.split("=", 1) for line in told.stdout.splitlines())

    def problem(self) -> str:
        return usable(self.machine.providers())["zfs"].problem


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_its_scripts_see_the_variables_and_no_other_program(place: Place) -> None:
    place.say(env={"ZPOOL": "tank", "HOME": "/root", "PATH": "/usr/bin:/bin:/opt/san"})
    seen = await place.run(VOL_NAME="v")
    assert seen["ZPOOL"] == "tank"
    assert seen["HOME"] == "/root"
    assert seen["PATH"] == "/usr/bin:/bin:/opt/san"
    assert seen["VOL_NAME"] == "v"
    other = await place.machine.run(Command(("env",)), 60)
    assert "ZPOOL" not in other.stdout


async def test_a_change_counts_for_the_next_script(place: Place) -> None:
    assert "ZPOOL" not in await place.run()
    place.say(env={"ZPOOL": "tank"})
    assert (await place.run())["ZPOOL"] == "tank"


async def test_a_script_may_last_as_long_as_it_says(place: Place) -> None:
    place.say(env={"NAP": "30"}, limits={"attach": 0.2, "all": 50})
    with pytest.raises(CommandFailed, match=r"did not end within 0\.2 s"):
        await place.run("attach")
    place.say(limits={"all": 0.2}, env={"NAP": "30"})
    with pytest.raises(CommandFailed, match=r"did not end within 0\.2 s"):
        await place.run("create")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"env": {"VOL_NAME": "x"}}, "variable VOL_NAME is the cluster's to set"),
        ({"env": {"A B": "x"}}, "'A B' cannot be a variable"),
        ({"limits": {"creat": 5}}, "there is no script 'creat': all, create,"),
        ({"limits": {"create": 100000}}, "<= 82800"),
        ({"limits": {"create": 0}}, "> 0"),
        ({"environment": {}}, "unknown field `environment`"),
    ],
)
async def test_a_file_that_says_what_it_cannot_makes_the_provider_invalid(
    place: Place, content: dict[str, Any], told: str
) -> None:
    assert place.problem() == ""
    path = place.say(**content)
    assert told in place.problem()
    assert f"File '{path}' cannot be used" in place.problem()
    with pytest.raises(Failed, match="cannot be used"):
        await place.run()


async def test_a_file_that_others_may_write_is_not_believed(place: Place) -> None:
    place.say(env={"LD_PRELOAD": "/tmp/evil.so"}).chmod(0o666)
    assert "is not trusted" in place.problem()
    with pytest.raises(Failed, match="is not trusted"):
        await place.run()
