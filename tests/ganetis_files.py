# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's own programs on configuration files, unpacked from Debian's packages."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers import PYTHON, SCRIPTS

RECORDED = "usr/share/ganeti/testsuite/test/data"
PACKAGES = (
    *("ganeti-3.0", "ganeti-testsuite", "python3-bitarray", "python3-cffi-backend"),
    *("python3-cryptography", "python3-openssl", "python3-pycurl"),
    *("python3-pyinotify", "python3-pyparsing", "python3-simplejson"),
)
_FILES = (
    *("server.pem", "known_hosts", "rapi.pem", "spice.pem", "spice-ca.pem"),
    *("hmac.key", "cluster-domain-secret", "file-storage-paths"),
)
_CFGUPGRADE = """
from ganeti import bootstrap
bootstrap.GenerateClusterCrypto = lambda *args, **more: None  # the files are there
from ganeti.tools.cfgupgrade import CfgUpgrade, ParseOptions
CfgUpgrade(*ParseOptions()).Run()
"""
_VERIFY = """
import json, sys
from ganeti.config import ConfigWriter
ConfigWriter._WriteConfig = lambda *args, **more: None  # it is only looked at
def verified(path):
    try:
        writer = ConfigWriter(cfg_file=path, offline=True, accept_foreign=True)
        return writer.VerifyConfig()
    except Exception as error:  # it cannot read such a file, or gives up at a defect
        return [f"{type(error).__name__}: {error}"]
print(json.dumps([verified(path) for path in sys.argv[1:]]))
"""
_FORCED = """
import json, sys
from ganeti import constants, errors, utils
def forced(name, value):
    try:
        utils.ForceDictType({name: value}, constants.HVS_PARAMETER_TYPES)
    except errors.GenericError as error:
        return str(error)
    return ""
values, names = json.loads(sys.argv[1]), [*constants.HVS_PARAMETER_TYPES, "colour"]
print(json.dumps({name: [forced(name, one) for one in values] for name in names}))
"""
_SSCONF = """
import json, sys
from ganeti.config import ConfigWriter
ConfigWriter._WriteConfig = lambda *args, **more: None  # it is only looked at
writer = ConfigWriter(cfg_file=sys.argv[1], offline=True, accept_foreign=True)
print(json.dumps(writer.GetSsconfValues()))
"""
_COLUMNS = """
import json, sys
from ganeti import query
fields = getattr(query, sys.argv[1].upper() + "_FIELDS")
print(json.dumps({name: (one[0].title, one[0].kind) for name, one in fields.items()}))
"""


class Ganeti:
    """Ganeti, as it lies in a directory."""

    def __init__(self, place: Path) -> None:
        self._recorded = place / RECORDED
        python = f"{place / SCRIPTS}:{place}/usr/lib/python3/dist-packages"
        self._environment = os.environ | {"PYTHONPATH": python}

    def recorded(self, version: str) -> bytes:
        """Return a configuration that a Ganeti of that version wrote."""
        return (self._recorded / f"cluster_config_{version}.json").read_bytes()

    def cfgupgrade(self, data: bytes, directory: Path, *options: str) -> Any:
        """Return what its cfgupgrade makes of a configuration."""
        directory.mkdir()
        (directory / "config.data").write_bytes(data)
        for name in _FILES:
            (directory / name).write_text("x")
        (directory / "ssconf_master_node").write_text("x\n")
        places = (f"--path={directory}", f"--confdir={directory}")
        usual = ("--force", "--ignore-hostname", "--no-verify")
        self._run(_CFGUPGRADE, *usual, *places, *options)
        return json.loads((directory / "config.data").read_bytes())

    def verify(self, *paths: Path) -> list[list[str]]:
        """Return the complaints of its library about each configuration of 3.0."""
        found: list[list[str]] = json.loads(self._run(_VERIFY, *map(str, paths)))
        return found

    def hypervisor_parameters(self, *values: Any) -> dict[str, list[str]]:
        """Return what it says of each value of each parameter; empty where it fits."""
        found: dict[str, list[str]] = json.loads(self._run(_FORCED, json.dumps(values)))
        return found

    def ssconf(self, path: Path) -> dict[str, str]:
        """Return what it would write into the ssconf files of nodes, by name."""
        found: dict[str, str] = json.loads(self._run(_SSCONF, str(path)))
        return found

    def columns(self, resource: str) -> dict[str, list[str]]:
        """Return title and kind of each field that its lists have."""
        found: dict[str, list[str]] = json.loads(self._run(_COLUMNS, resource))
        return found

    def _run(self, code: str, *words: str) -> str:
        done = subprocess.run(
            [PYTHON, "-c", code, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def differences(ours: Any, theirs: Any, at: str = "") -> Iterator[str]:
    """Yield the places at which two documents are not equal."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        yield from (f"{at}/{key}" for key in ours.keys() ^ theirs.keys())
        for key in sorted(ours.keys() & theirs.keys()):
            yield from differences(ours[key], theirs[key], f"{at}/{key}")
    elif at.endswith("/nodes"):  # Ganeti's are a set
        yield from [] if set(ours) == set(theirs) else [at]
    elif isinstance(ours, list) and isinstance(theirs, list):
        yield from [] if len(ours) == len(theirs) else [at]
        for number, pair in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(*pair, f"{at}/{number}")
    elif ours != theirs:
        yield at


def cannot_be_known(place: str, version: str) -> bool:
    """Whether an upgrade has dropped it, or filled it in for life."""
    if place.rsplit("/", 1)[1] in {"physical_id", "xen_cmd"}:
        return True
    if version == "2.7" and place.startswith("/nodegroups/"):
        return "/ipolicy/" in place  # a list of bounds names all of them
    old = version in {"2.8", "2.9", "2.10"}
    return old and "/children/" in place and place.endswith("/uuid")
