# SPDX-License-Identifier: BSD-2-Clause
"""The OS definitions that this node has, and how their scripts run.

An OS definition is a directory of scripts that put a system on an instance's disks.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import json

from moorage.errors import BadInput, Failed, NotFound
from moorage.model import Disk, Nic, Os
from moorage.model.facts import OS_PARAMETERS_SINCE, OS_VARIANTS_SINCE
from moorage.protocol import InstallSystem, WithSystem
from moorage.storage import Command, Opened, Output, Progress, Where
from moorage.storage.provider import parse_parameters
from moorage.storage.uri import local_files
from moorage.storage.validation import check_parameter_name, text

from .network_words import words
from .providers import company, fact, visible

SEARCH_PATH = (
    "/srv/ganeti/os",
    "/usr/local/lib/ganeti/os",
    "/usr/lib/ganeti/os",
    "/usr/share/ganeti/os",
)
"""Where definitions are looked for; the first directory wins."""
_API_VERSIONS = frozenset({10, 15, 20})
PROGRESS = "OS_PROGRESS"
"""The variable that names the file where a script may write how far it is."""
UID_POOL = "OS_UID_POOL"
"""The variable that has the users of guests, for a script that confines programs."""
_API_FILE = "ganeti_api_version"
_SCRIPTS = ("create", "import", "export", "rename")
_VARIANTS, _VARIANT_FILES = "variants.list", "variants/*.toml"
_PARAMETERS = "parameters.list"


class OsDisk(NamedTuple):
    """A disk, and where an OS script finds it.

    Attributes
    ----------
    served
        Whether its path is a file that the node makes of its URI, for the script.
    """

    disk: Disk
    where: Where
    served: bool = False


class Install(NamedTuple):
    """All that an OS script is told: what the node is asked, and what it adds.

    Attributes
    ----------
    asked
        The verb; its hypervisor parameters are filled.
    node
        This one's name.
    disks
        Those of the verb.
    """

    asked: WithSystem[Any]
    node: str
    disks: tuple[OsDisk, ...] = ()


def scan(search_path: Iterable[Path]) -> list[Os]:
    """Return a record of every visible directory of the search path, in order."""
    entries = [entry for folder in search_path for entry in visible(folder)]
    return [look(entry) for entry in entries if entry.is_dir()]


def usable(found: Iterable[Os]) -> dict[str, Os]:
    """Return the definition that each name stands for; the first one wins."""
    chosen: dict[str, Os] = {}
    for one in found:
        chosen.setdefault(one.name, one)
    return chosen


def look(entry: Path) -> Os:
    """Return the record of one definition; what it must have depends on its API."""
    api, problem = _api(entry)
    scripts = (*_SCRIPTS, "verify") if api >= OS_PARAMETERS_SINCE else _SCRIPTS
    variants, parameters = list[str](), dict[str, str]()
    if api >= OS_VARIANTS_SINCE:
        lines = _lines(entry, _VARIANTS)
        variants = [line.partition("#")[0].strip() for line in lines]
        files = (path.stem for path in entry.glob(_VARIANT_FILES))
        variants += sorted(name for name in files if name[0] != ".")
    if api >= OS_PARAMETERS_SINCE:
        parameters = parse_parameters("\n".join(_lines(entry, _PARAMETERS)))
    return Os(
        name=entry.name,
        path=str(entry),
        api=api,
        variants=tuple(variant for variant in variants if variant),
        parameters=parameters,
        problem=problem or _missing(entry, scripts) or company(entry),
    )


def _missing(entry: Path, scripts: Iterable[str]) -> str:
    found = (fact(entry / one).problem(one, f"{entry}", runs=True) for one in scripts)
    return next(filter(None, found), "")


def _api(entry: Path) -> tuple[int, str]:
    """Return the highest common version of the interface, and what is wrong with it."""
    found = fact(entry / _API_FILE)
    lacking = found.problem(_API_FILE, f"{entry}", runs=False)
    if lacking:
        return 0, lacking
    words = [line.strip() for line in _lines(entry, _API_FILE) if line.strip()]
    if not words or not all(word.isdecimal() for word in words):
        return 0, f"File '{_API_FILE}' under path '{entry}' does not hold versions"
    common = _API_VERSIONS & {int(word) for word in words}
    if not common:
        ours = ", ".join(map(str, sorted(_API_VERSIONS)))
        theirs = ", ".join(words)
        told = f"API version mismatch for path '{entry}'"
        return 0, f"{told}: found {theirs}, want {ours}"
    return max(common), ""


def _lines(entry: Path, name: str) -> list[str]:
    try:
        return (entry / name).read_text(errors="replace").splitlines()
    except OSError:  # an optional file; a required one was looked at before
        return []


async def verify(
    found: Mapping[str, Os],
    install: Install,
    run: Callable[[Command], Awaitable[Output]],
) -> None:
    """Let the definition look at the OS parameters, if it is one that does.

    Raises
    ------
    NotFound, BadInput, Failed
        As :func:`command` does.
    CommandFailed
        If it does not like them; the sentence ends with its last lines.
    """
    asked = command("verify", found, install, "parameters")
    if found[install.asked.os.partition("+")[0]].verifies:
        await run(asked)


def command(
    action: str,
    found: Mapping[str, Os],
    install: Install,
    *arguments: str,
    **more: str,
) -> Command:
    """Return the command of a definition's script, with `more` variables.

    Raises
    ------
    NotFound, BadInput, Failed
        If the definition is not there, lacks the variant, or is not valid here.
    """
    name, _, variant = install.asked.os.partition("+")
    definition = found.get(name)
    if definition is None:
        raise NotFound(f"OS '{name}' is not there", hint="see: gnt-os list")
    if definition.problem:
        raise Failed(f"OS '{name}' is not valid: {definition.problem}")
    chosen = _variant(definition, variant)
    label = f"{name}+{chosen}" if chosen else name
    return Command(
        (f"{definition.path}/{action}", *arguments),
        env=environment(install, definition, chosen) | _pool(install) | more,
        cwd=definition.path,
        log=f"{action}-{label}-{install.asked.name}",
        failure=f"OS {action} script",
        images=_images(install),
        progress=Progress(f"OS {label}: {action}", variable=PROGRESS),
    )


def transfer(
    action: str, found: Mapping[str, Os], install: Install, index: int
) -> Command:
    """Return the command that moves the data of one disk: ``export`` or ``import``.

    Raises
    ------
    NotFound, BadInput, Failed
        As :func:`command` does.
    """
    where, word = install.disks[index].where, action.upper()
    uri = where.uris.get(install.asked.hypervisor.lower())
    told = {
        f"{word}_INDEX": f"{index}",
        f"{word}_DISK_PATH": where.path,
        f"{word}_DISK_URI": uri,
        f"{word}_DEVICE": where.path or uri,
        "EXP_SIZE_FD": "2",  # what it says there is for its log
    }
    more = {name: value for name, value in told.items() if value}
    return command(action, found, install, **more)


def _images(install: Install) -> dict[str, Opened]:
    """Return the image files that the script gets: as files that are open already."""
    places = [disk.where for disk in install.disks if not disk.served]
    found = [one.path for one in places if one.path and not one.block]
    hypervisor = install.asked.hypervisor.lower()
    uris = [disk.where.uris.get(hypervisor, "") for disk in install.disks]
    named = [path for uri in uris for path in local_files(uri)]
    return {**dict.fromkeys(named, Opened.VOLUME), **dict.fromkeys(found, Opened.FILE)}


def _variant(definition: Os, wanted: str) -> str:
    if wanted and wanted not in definition.variants:
        told = ", ".join(definition.variants) or "none"
        raise BadInput(
            f"OS '{definition.name}' has no variant '{wanted}': it has {told}",
            variants=list(definition.variants),
        )
    return wanted or next(iter(definition.variants), "")


def environment(install: Install, definition: Os, variant: str) -> dict[str, str]:
    """Return all variables of an OS script.

    Raises
    ------
    BadInput
        If a parameter's value cannot be a variable's.
    """
    asked, disks = install.asked, install.disks
    found = {
        "OS_API_VERSION": f"{definition.api}",
        "OS_NAME": definition.name,
        "INSTANCE_OS": asked.os,
        "INSTANCE_NAME": asked.name,
        "INSTANCE_UUID": asked.uuid,
        "INSTANCE_CTIME": f"{asked.ctime}",
        "INSTANCE_MTIME": f"{asked.mtime}",
        "INSTANCE_PRIMARY_NODE": install.node,
        "INSTANCE_SECONDARY_NODES": " ".join(asked.secondaries),
        "HYPERVISOR": asked.hypervisor,
        "DISK_COUNT": f"{len(disks)}",
        "NIC_COUNT": f"{len(asked.nics)}",
        "DEBUG_LEVEL": "0",
    }
    if variant:
        found["OS_VARIANT"] = variant
    if isinstance(asked, InstallSystem) and asked.again:
        found["INSTANCE_REINSTALL"] = "1"
    for slot, disk in enumerate(disks):
        found |= _prefixed(f"DISK_{slot}", _of_disk(disk, asked))
    for slot, nic in enumerate(asked.nics):
        found |= _prefixed(f"NIC_{slot}", _of_nic(nic, asked))
    found |= _variables("INSTANCE_BE", asked.beparams)
    found |= _variables("INSTANCE_HV", asked.hvparams)
    return found | _variables("OSP", asked.osparams)


def _pool(install: Install) -> dict[str, str]:
    return {UID_POOL: json.encode(install.asked.uid_pool).decode()}


def own_words(cache: Path) -> dict[str, str]:
    """Return variables by which a definition of ours finds what it shares with us.

    Parameters
    ----------
    cache
        A directory of root's for what it keeps.
    """
    return {
        "OS_PYTHON": sys.executable,
        "OS_MODULES": str(Path(__file__).parents[3]),
        "OS_CACHE": str(cache),
    }


def _variables(prefix: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return a variable for each parameter that has a value."""
    return {
        f"{prefix}_{check_parameter_name(key).upper().replace('-', '_')}": text(
            key, one
        )
        for key, one in values.items()
        if one is not None
    }


def _prefixed(prefix: str, values: Mapping[str, str | None]) -> dict[str, str]:
    return {f"{prefix}_{key}": value for key, value in values.items() if value}


def _of_disk(one: OsDisk, asked: WithSystem[Any]) -> dict[str, str | None]:
    disk, where, _ = one
    kind = "block" if where.block or not where.path else "file:loop"
    return {
        "PATH": where.path,
        "URI": where.uris.get(asked.hypervisor.lower()),
        "SIZE": f"{disk.size}",
        "ACCESS": disk.mode,
        "UUID": disk.uuid,
        "NAME": disk.name,
        "FRONTEND_TYPE": _frontend(asked, "disk_type"),
        "BACKEND_TYPE": kind,
    }


def _of_nic(nic: Nic, asked: WithSystem[Any]) -> dict[str, str | None]:
    mode = str(nic.nicparams.get("mode") or "")
    link = str(nic.nicparams.get("link") or "")
    return {
        "MAC": nic.mac,
        "UUID": nic.uuid,
        "NAME": nic.name,
        "IP": nic.ip,
        "MODE": mode,
        "LINK": link,
        "BRIDGE": link if mode == "bridged" else None,
        "VLAN": str(nic.nicparams.get("vlan") or ""),
        "FRONTEND_TYPE": _frontend(asked, "nic_type"),
        "NETWORK_UUID": nic.network,
        **words(next((n for n in asked.networks if n.uuid == nic.network), None)),
    }


def _frontend(asked: WithSystem[Any], parameter: str) -> str:
    return str(asked.hvparams.get(parameter) or "paravirtual")
