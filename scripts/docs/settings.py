# SPDX-License-Identifier: BSD-2-Clause
"""The files of settings that the packages bring: each with its meaning and default."""

import json
from pathlib import Path
from textwrap import wrap

import msgspec
from declared import Lines

from moorage.daemons.agent import Settings
from moorage.jobs.words import attributes
from moorage_cloud.conf import Conf

ROOT = Path(__file__).resolve().parents[2]
AGENT_TOML = ROOT / "debian" / "agent.toml"
CLOUD_TOML = ROOT / "cloud" / "debian" / "cloud.toml"


def agent_toml() -> Lines:
    """Yield the file of the agent's settings, each with its meaning and default."""
    yield "# How the agent of this node runs. A line that is commented out shows the"
    yield "# default. After a change: systemctl restart moorage-node; guests go on."
    yield from _settings(Settings)


def cloud_toml() -> Lines:
    """Yield the file of the cloud's settings, each with its meaning and default."""
    yield "# How the cloud runs. A line that is commented out shows the default. After"
    yield "# a change: systemctl restart moorage-cloud moorage-cloud-worker."
    yield from _settings(Conf)


def _settings(kind: type[msgspec.Struct]) -> Lines:
    told = attributes(kind)
    for one in msgspec.structs.fields(kind):
        yield ""
        text = told[one.name].replace("`", "")
        yield from (f"# {line}" for line in wrap(text, 86, break_on_hyphens=False))
        yield f"# {one.name} = {_toml(_default(one))}"


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def _toml(value: object) -> str:
    plain = msgspec.to_builtins(value)
    if not isinstance(plain, dict):
        return json.dumps(plain)
    return f"{{ {', '.join(f'{name} = {_toml(one)}' for name, one in plain.items())} }}"
