# SPDX-License-Identifier: BSD-2-Clause
"""A node that listens everywhere: the cluster is told where others reach it."""

import socket
import subprocess
from pathlib import Path

from moorage.daemons import process
from moorage.daemons.agent import Settings, write_settings
from moorage.daemons.paths import NodePlaces
from moorage.model.token import from_text
from support.ports import free_port


def outward() -> str | None:
    """Return the address that this machine speaks from; None without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def test_a_token_names_an_address_that_others_reach(tmp_path: Path) -> None:
    places = NodePlaces(tmp_path / "node")
    write_settings(places, Settings(port=free_port(), hypervisor="fake"))
    with (tmp_path / "out").open("wb") as out:
        ask = process.command("agent", str(places.root))
        agent = subprocess.Popen(ask, stdout=out, stderr=out)
    with agent:
        try:
            process.wait_until(
                lambda: places.token.exists() or agent.poll() is not None, 60
            )
            if outward():
                assert from_text(places.token.read_text()).address == outward()
            else:
                told = (tmp_path / "out").read_text()
                assert "nobody can tell at which address others reach it" in told
        finally:
            agent.kill()
