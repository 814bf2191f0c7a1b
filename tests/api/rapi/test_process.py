# SPDX-License-Identifier: BSD-2-Clause
"""The door's process: started by its command, with its files, and ended."""

import asyncio
import base64
import json
import ssl
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from desk import desk
from moorage.node.certificates.authority import Authority
from moorage.testing.cluster import ClusterBuilder, SimCluster
from support.ports import free_port


class Process:
    """The directory of a door, and what is typed there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self.settings = root / "rapi.toml"
        self.settings.write_text(
            f'address = "127.0.0.1"\nport = {self.port}\nsocket = "{root}/door.sock"\n'
            f'certificate = "{root}/rapi.pem"\nusers = "{root}/users"\n'
            f'tokens = "{root}/tokens"\n'
        )

    async def types(self, *words: str, given: bytes = b"") -> str:
        process = await self.starts(*words)
        out, err = await process.communicate(given)
        assert not process.returncode, err
        return out.decode()

    async def starts(self, *words: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        argv = (sys.executable, "-m", "moorage.cli.moorage", "rapi", *words)
        return await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, stderr=pipe
        )

    def _get(self, authorization: str):
        trust = ssl.create_default_context(cafile=str(self.root / "keys/ca.pem"))
        url = f"https://localhost:{self.port}/2/instances"
        asked = urllib.request.Request(url, headers={"Authorization": authorization})
        try:
            with urllib.request.urlopen(asked, context=trust) as told:  # noqa: S310
                return told.status, json.load(told)
        except HTTPError as error:
            with error:
                return error.code, json.load(error)

    async def get(self, authorization: str):
        return await asyncio.to_thread(self._get, authorization)


@pytest.mark.slow
async def test_a_door_of_a_process_of_its_own(tmp_path):
    Authority.make(tmp_path / "keys", "test")
    cluster = await SimCluster.start(
        tmp_path / "sim", ClusterBuilder().instance("web1")
    )
    place = Process(tmp_path)
    common = ("--settings", str(place.settings))
    told = await place.types(
        "certificate", "localhost", *common, "--dir", str(tmp_path)
    )
    assert "new certificate for localhost" in told
    again = await place.types("certificate", *common, "--dir", str(tmp_path))
    assert "has one that lasts" in again
    line = await place.types("password", "anna", "--role", "write", given=b"geheim\n")
    (tmp_path / "users").write_text(line)
    (tmp_path / "users").chmod(0o600)
    async with desk(cluster, tmp_path):
        door = await place.starts("run", "--log-format", "json", *common)
        while b"is served at" not in await door.stderr.readline():
            pass
        anna = base64.b64encode(b"anna:geheim").decode()
        listed = (200, [{"id": "web1", "uri": "/2/instances/web1"}])
        assert await place.get(f"Basic {anna}") == listed
        assert (await place.get("Bearer nothing"))[0] == 401
        token = (await place.types("add-token", "robot", *common)).strip()
        assert await place.get(f"Bearer {token}") == listed
        assert "robot read until" in await place.types("list-tokens", *common)
        assert token not in (tmp_path / "tokens").read_text()
        await place.types("remove-token", "robot", *common)
        assert (await place.get(f"Bearer {token}"))[0] == 401
        door.terminate()
        _, err = await door.communicate()
        assert door.returncode == 0
        lines = [json.loads(line) for line in err.splitlines()]
        (first, *_) = [one for one in lines if one.get("user") == "anna"]
        assert (first["status"], first["path"]) == (200, "/2/instances")
        assert first["address"] == "127.0.0.1"
        assert first["message"].startswith("200 GET /2/instances by anna")
        assert {"nobody", "robot"} <= {one.get("user") for one in lines}
    await cluster.stop()
