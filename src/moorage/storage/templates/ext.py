# SPDX-License-Identifier: BSD-2-Clause
"""``ext``: volumes of an ExtStorage provider, driven by its scripts."""

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moorage.disk_templates import FACTS, LIMITED
from moorage.errors import BadInput, Failed, NotSupported
from moorage.model import Disk, Need, Provider, Unit, Volume
from moorage.model.objects import REUSE
from moorage.storage import limits
from moorage.storage.base import Template, VolumeRequest, nothing
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import (
    Command,
    Id,
    Opened,
    Outcome,
    Params,
    Progress,
    Settings,
    Steps,
    Where,
)
from moorage.storage.printed import parse_attach, parse_capacity, parse_list
from moorage.storage.provider import lists, not_found, room_key
from moorage.storage.validation import (
    KERNELSPACE,
    USERSPACE,
    check_name,
    check_parameter_name,
    check_provider_name,
    checked_access,
    text,
)
from moorage.units import Mib

PROGRESS = "VOL_PROGRESS"
"""The variable that names the file where a script may write how far it is."""

Room = tuple[Mib | None, Mib | None]
"""Total and free."""

_log = logging.getLogger(__name__)
_NOT_METADATA = re.compile(r"^[^A-Za-z0-9_+.]|[^A-Za-z0-9_+.-]")
_METADATA_LENGTH = 128
_VOLUME = re.compile(r"[!-~]{1,255}")
"""A volume that somebody else named: a word that ``list`` could print."""


class Ext(Template):
    """The ExtStorage interface: variables in, exit status and paths out.

    The scripts are idempotent by contract, so a verb runs its script without asking;
    what it changed is not known, and `CHANGED` is returned.
    """

    name = "ext"
    capabilities = Capabilities(
        facts=FACTS["ext"],
        can=Can.CREATE
        | Can.GROW
        | Can.SNAPSHOT
        | Can.CLONE
        | Can.USERSPACE
        | Can.OPEN
        | Can.SETINFO
        | Can.VERIFY
        | Can.ROOM
        | Can.LIST
        | Can.ADOPT,
        provider=True,
    )

    @classmethod
    def logical_id(cls, request: VolumeRequest) -> tuple[Any, ...]:
        """Return ``(provider, volume)``; an adopted volume keeps its name."""
        provider = cls._provider_of(request.params)
        adopted = request.params.get("adopt")
        return (provider, str(adopted) if adopted else request.name(cls.name))

    @classmethod
    def adoptable(cls, volume: str) -> str:
        """Return the name of a volume; providers print them in lists, as words."""
        if not _VOLUME.fullmatch(volume):
            raise BadInput(f"'{volume[:80]}' is not a name of a provider's volume")
        return volume

    @classmethod
    def parameters(cls, given: Params) -> dict[str, Any]:
        """Return the provider and all the parameters meant for it, as text."""
        cls._check_words(given)
        if any(name.lower() == "adopt" for name in given):
            raise BadInput(
                "what is adopted is no parameter of a provider",
                hint="gnt-disk add --adopt NAME; --disk: adopt=NAME",
            )
        cls._provider_of(given)
        cls._access(given)
        kept = {check_parameter_name(key): text(key, given[key]) for key in given}
        kept |= super().parameters({k: v for k, v in given.items() if k in LIMITED})
        _variables(kept)
        return kept

    @classmethod
    def defaults(cls, given: Params) -> dict[str, Any]:
        """Return ``access`` and limits: of all else, each provider has its own."""
        for name in given:
            if name not in ("access", *LIMITED):
                raise BadInput(
                    f"the parameter '{name}' belongs to one provider: only access and "
                    f"limits can be preset for template '{cls.name}'",
                    hint=f"gnt-disk add -t {cls.name} -D {name}=...",
                )
        own = {"access": cls._access(given)} if "access" in given else {}
        found = super().parameters({k: v for k, v in given.items() if k in LIMITED})
        return own | found

    @classmethod
    def unit_key(cls, settings: Settings, params: Params, logical_id: Id = ()) -> str:
        """Return the provider."""
        del settings
        return str(logical_id[0] if logical_id else params.get("provider") or "")

    @staticmethod
    def _access(params: Params) -> str:
        return checked_access(params)

    @classmethod
    def _provider_of(cls, params: Params) -> str:
        provider = params.get("provider")
        if not provider:
            raise BadInput(f"Missing provider for template '{cls.name}'")
        return check_provider_name(str(provider))

    def examine(self) -> Steps[tuple[Need, ...]]:
        """Look for the provider that is named, if one is."""
        name = self.site.params.get("provider")
        if not name:
            return ()
        found = self.site.providers.get(name)
        why = found.problem if found else f"there is no ExtStorage provider '{name}'"
        return (Need(kind="provider", name=name, problem=why),)
        yield  # what makes this a generator

    def room(self) -> Steps[tuple[Unit, ...]]:
        """Return a unit for each valid provider; its room, where ``capacity`` tells."""
        only = self.site.params.get("provider")
        valid = [
            one
            for one in self.site.providers.values()
            if one.valid and only in (None, one.name)
        ]
        units = []
        for one in sorted(valid, key=lambda one: one.name):
            total, free = yield from self.capacity(one)
            key = room_key(one.name, self.site.pool)
            units.append(Unit(template=self.name, key=key, total=total, free=free))
        return tuple(units)

    def create(self, disk: Disk) -> Steps[Outcome]:
        """Run ``create``; of a volume that is there, where the provider is told so.

        One that lists ``reuse_data`` maps what is there. Any other would make it anew.
        """
        if disk.was_there and not self._told_of_reuse(disk):
            return nothing()
        return self._script("create", disk, VOL_SIZE=f"{disk.size}")

    def remove(self, disk: Disk) -> Steps[Outcome]:
        """Run ``remove``."""
        return self._script("remove", disk)

    def attach(self, disk: Disk) -> Steps[Where]:
        """Run ``attach``, and read where the volume is.

        A refusal of what the script printed leaves the volume as the script left
        it: the caller's undo is :meth:`detach`.
        """
        answer = yield self._command("attach", disk, {})
        where = parse_attach(str(disk.logical_id[0]), answer.stdout)
        if where.path:
            found = yield Command(("test", "-b", where.path), check=False, reads=True)
            if found.code:
                raise Failed(
                    f"disk {disk.label} is not attached: "
                    f"{where.path} is not a block device",
                    hint=f"what its scripts said is on node {self.site.node}, in the "
                    f"log create-{disk.logical_id[0]}-{disk.volume}",
                    path=where.path,
                    disk=disk.uuid,
                )
        self._check_userspace(disk, where)
        return where

    def detach(self, disk: Disk) -> Steps[Outcome]:
        """Run ``detach``."""
        return self._script("detach", disk)

    def open(self, disk: Disk, *, exclusive: bool) -> Steps[Outcome]:
        """Run ``open``, where the provider has one."""
        if not self._has("open", disk):
            return nothing()
        return self._script("open", disk, VOL_OPEN_EXCLUSIVE=f"{exclusive}")

    def close(self, disk: Disk) -> Steps[Outcome]:
        """Run ``close``, where the provider has one."""
        if not self._has("close", disk):
            return nothing()
        return self._script("close", disk)

    def grow(self, disk: Disk, to: Mib) -> Steps[Outcome]:
        """Run ``grow`` with the old and the new size."""
        if to <= disk.size:
            return nothing()
        return self._script("grow", disk, VOL_SIZE=f"{disk.size}", VOL_NEW_SIZE=f"{to}")

    def snapshot(self, disk: Disk, name: str, size: Mib) -> Steps[Outcome]:
        """Run ``snapshot``; without such a script there is no snapshot to promise."""
        if not self._has("snapshot", disk):
            raise NotSupported(
                f"ExtStorage provider '{disk.logical_id[0]}' takes no snapshots "
                f"(disk {disk.label})",
                disk=disk.uuid,
            )
        return self._script(
            "snapshot",
            disk,
            VOL_SNAPSHOT_NAME=check_name("snapshot", name),
            VOL_SNAPSHOT_SIZE=f"{size}",
        )

    def setinfo(self, disk: Disk, text: str) -> Steps[Outcome]:
        """Run ``setinfo``."""
        return self._script("setinfo", disk, VOL_METADATA=plain(text))

    def verify(self, disk: Disk) -> Steps[Outcome]:
        """Run ``verify parameters``; what it says is the reason of a refusal."""
        command = self._command("verify", disk, {}, "parameters")
        try:
            yield command
        except Failed as failure:
            if failure.facts.get("killed"):
                raise
            raise BadInput(
                f"ExtStorage provider '{disk.logical_id[0]}' does not take the "
                f"parameters of disk {disk.label}: {failure.message}",
                hint=failure.hint,
                disk=disk.uuid,
            ) from failure
        return Outcome.UNCHANGED

    def volumes(self, params: Params) -> Steps[tuple[Volume, ...]]:
        """Run ``list``, where the provider has one, with the parameters of a disk."""
        provider = self._called(self._provider_of(params))
        if "list" not in provider.optional:
            raise NotSupported(
                f"ExtStorage provider '{provider.name}' does not tell which volumes "
                "there are: it has no script 'list'"
            )
        kept = {"provider": provider.name} | dict(params)
        told = yield replace(self._question("list", provider, kept), whole=True)
        return parse_list(provider.name, told.stdout)

    def _question(
        self, script: str, provider: Provider, params: Params, **more: str
    ) -> Command:
        """Return a script that is asked of a storage, about no disk."""
        return Command(
            (f"{provider.path}/{script}",),
            env={
                **_variables(params),
                "VOL_NODE": self.site.node,
                **more,
                **_places(provider, params),
            },
            cwd=provider.path,
            images=_opened(provider, params),
            failure=f"External storage's {script} script",
            reads=True,
        )

    def capacity(self, provider: Provider) -> Steps[Room]:
        """Return total and free MiB; None where the provider cannot tell.

        A storage system that hangs must not make the whole node look dead, so it has
        seconds to answer; unknown room refuses nothing.
        """
        if "capacity" not in provider.optional:
            return None, None
        params = {"provider": provider.name, **self._pool("pool"), **self.site.params}
        try:
            asked = self._question(
                "capacity", provider, params, **self._pool("VOL_POOL")
            )
            told = yield replace(asked, limit=limits.CAPACITY)
            if not told.stdout.strip():
                return None, None  # it cannot tell, or is not set up here
            return parse_capacity(provider.name, told.stdout)
        except Failed as failure:
            _log.warning("%s", failure.message)
            return None, None

    def _script(self, action: str, disk: Disk, **more: str) -> Steps[Outcome]:
        yield self._command(action, disk, more)
        return Outcome.CHANGED

    def _command(
        self, action: str, disk: Disk, more: Mapping[str, str], *words: str
    ) -> Command:
        provider = self._provider(disk)
        reads = action == "attach"
        return Command(
            (f"{provider.path}/{action}", *words),
            env={
                **self._environment(disk),
                **_places(provider, disk.params),
                **more,
            },
            cwd=provider.path,
            images=_opened(provider, disk.params),
            log="" if reads else f"{action}-{provider.name}-{disk.volume}",
            failure=f"External storage's {action} script",
            progress=Progress(f"{action} disk {disk.label}", variable=PROGRESS),
        )

    def _provider(self, disk: Disk) -> Provider:
        return self._called(str(disk.logical_id[0]))

    def _called(self, name: str) -> Provider:
        provider = self.site.providers.get(name)
        if provider is None:
            raise Failed(not_found(name), node=self.site.node)
        if provider.problem:
            raise Failed(provider.problem, node=self.site.node)
        return provider

    def _has(self, action: str, disk: Disk) -> bool:
        provider = self._provider(disk)
        if action in provider.optional:
            return True
        _log.info(
            "ExtStorage provider '%s' has no script '%s': skipped for disk %s",
            provider.name,
            action,
            disk.label,
        )
        return False

    def _environment(self, disk: Disk) -> dict[str, str]:
        """Return the variables of every script; the last three go beyond Ganeti's.

        A provider that has a parameter ``pool`` of its own sees what that was given.
        """
        named = {"VOL_CNAME": disk.known_as} if disk.known_as else {}
        usual = {"provider": disk.logical_id[0], "access": KERNELSPACE}
        params = {**usual, **self._pool("pool"), **disk.params}
        if disk.was_there:
            params = {k: v for k, v in params.items() if k.lower() != REUSE}
            params |= {REUSE: "True"} if self._told_of_reuse(disk) else {}
        return {
            "VOL_NAME": disk.volume,
            "VOL_UUID": disk.uuid,
            **named,
            **_variables(params),
            "VOL_EPOCH": f"{disk.epoch}",
            "VOL_NODE": self.site.node,
            **self._pool("VOL_POOL"),
        }

    def _told_of_reuse(self, disk: Disk) -> bool:
        """Whether the provider of a disk lists ``reuse_data`` among its parameters."""
        return lists(self._provider(disk), REUSE)

    def _pool(self, name: str) -> dict[str, str]:
        """Return the storage pool by some name, where there is one."""
        return {name: self.site.pool} if self.site.pool else {}

    def _check_userspace(self, disk: Disk, where: Where) -> None:
        wanted = disk.params.get("access") == USERSPACE
        hypervisor = self.site.hypervisor.lower()
        if wanted and hypervisor not in where.uris:
            raise Failed(
                "Userspace access is not supported by the "
                f"'{disk.logical_id[0]}' ExtStorage provider for the "
                f"'{hypervisor}' hypervisor",
                offered=sorted(where.uris),
            )


def metadata(instance: str) -> str:
    """Return the note that Ganeti keeps beside the volumes of an instance.

    >>> metadata("web1.example.com")
    'originstname+web1.example.com'
    """
    return plain(f"originstname+{instance}")


def plain(note: str) -> str:
    """Return a note as storage can keep it: 128 plain characters at most."""
    return _NOT_METADATA.sub("_", note)[:_METADATA_LENGTH]


def _places(provider: Provider, params: Params) -> dict[str, str]:
    """Return ``VOL_AT_<NAME>`` for each directory that a parameter names.

    A script sees names in capitals, so a parameter is one however it was written. The
    value is what the node puts an open descriptor in the place of, which must not
    happen to ``EXTP_<NAME>``: so it ends in a dot.
    """
    named = {name.upper() for name in provider.places}
    return {
        f"VOL_AT_{name.upper()}": f"{value}/."
        for name, value in params.items()
        if value and name.upper() in named
    }


def _opened(provider: Provider, params: Params) -> dict[str, Opened]:
    """Return those directories as the node is to open them."""
    return dict.fromkeys(_places(provider, params).values(), Opened.PLACE)


def _variables(params: Params) -> dict[str, str]:
    """Return ``EXTP_<NAME>`` for each parameter; no two may share a variable.

    What a guest may ask of a disk is its hypervisor's business, and no script's.
    """
    found: dict[str, str] = {}
    for name, value in params.items():
        if name in LIMITED:
            continue
        variable = f"EXTP_{name.upper()}"
        if variable in found:
            raise BadInput(f"two parameters would both be {variable}")
        found[variable] = text(name, value)
    return found
