# SPDX-License-Identifier: BSD-2-Clause
"""``moorage backup`` and ``restore``: the cluster's state and keys in one file.

A backup is a tar file: ``manifest.json``, which has the SHA-256 of each other member,
``state.sqlite``, and what is in ``keys``. Who has one can give orders to all nodes,
unless its keys are sealed with a passphrase.
"""

import asyncio
import hashlib
import io
import lzma
import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from msgspec import DecodeError, Struct, json

from moorage import __version__, durable
from moorage.errors import BadInput, Exists, Failed, WrongState
from moorage.model import Config, Node
from moorage.model.commits import Head, Key
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.doors import enrolment
from moorage.node.records.copies import read_keys
from moorage.protocol import GetStanding
from moorage.store import (
    ConfigStore,
    Inspection,
    etcd_of,
    inspect,
    lay,
    loaded,
    raise_term,
    store_at,
)
from moorage.store.base import ADVICE
from moorage.store.etcd import EtcdSettings, EtcdStore
from moorage.store.records import copied

from . import master_process, standby, voting
from .lead_record import hand_over
from .paths import KEPT, MasterPlaces, NodePlaces
from .state_directory import claim
from .succession import drafted
from .voting import LEAP

_MANIFEST, _STORE, _KEYS = "manifest.json", "state.sqlite", "keys/"
_PRIVATE = re.compile(rb"-----END [A-Z ]*PRIVATE KEY-----\n")
_SEALED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
_MOST = 4 * 1024**3
"""Bytes of a member: the largest state is a hundredth of it."""
_CUT_OFF = (EOFError, zlib.error, lzma.LZMAError)
"""What is said of a file that somebody compressed, and that is not whole."""


class Manifest(Struct, frozen=True, kw_only=True):
    """What is in a backup.

    Attributes
    ----------
    time
        When it was made, in seconds.
    version, term
        Of the store.
    sums
        SHA-256 of each member, in hex.
    """

    cluster: str
    software: str
    time: float
    version: int
    term: int
    sums: dict[str, str]

    @property
    def told(self) -> str:
        """Say what it is."""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.time))
        return f"the state of cluster {self.cluster} of {when}, {self.version} commits"


def backup(places: MasterPlaces, target: Path, passphrase: bytes = b"") -> Manifest:
    """Write a backup, whether the master runs or not; it is whole or not there.

    Parameters
    ----------
    passphrase
        Seals the private keys in it; empty for keys in clear.

    Raises
    ------
    BadInput
        If its directory is not there.
    Exists
        If there is a file of the name.
    WrongState
        If the store is damaged: a copy of it would be, too.
    Failed
        If there is no room for a copy, or what is there is no store.
    """
    master_process.check_cluster(places)
    if target.exists():
        hint = f"moorage backup {target}.new"
        raise Exists(f"there is a file {target} already", hint=hint)
    if not target.parent.is_dir():
        raise BadInput(f"there is no directory {target.parent}")
    with tempfile.TemporaryDirectory(dir=places.root) as scratch:
        copy = Path(scratch) / _STORE
        keys = _taken(places, copy)
        found = inspect(copy, live=False)
        if found.faults:
            raise WrongState(
                f"{places.store} is damaged: {found.faults[0]}",
                hint=ADVICE,
            )
        keys = standby.keys_of_now(places, *loaded(found.records), keys)
        members = {_STORE: copy.read_bytes()}
        for name, data in sorted(keys.items()):
            members[f"{_KEYS}{name}"] = _sealed(data, passphrase)
        manifest = _manifest(found, members)
        _write(target, {_MANIFEST: json.format(json.encode(manifest)), **members})
    return manifest


def _sealed(data: bytes, passphrase: bytes) -> bytes:
    """Return a file with its private key sealed, if it has one."""
    found = _PRIVATE.search(data)
    if not (found and passphrase):
        return data
    return tls.key_pem(tls.read_key(data), passphrase) + data[found.end() :]


def _opened(data: bytes, passphrase: bytes) -> bytes:
    """Return a file with its private key in clear.

    Raises
    ------
    BadInput
        If the passphrase does not open it.
    """
    found = _PRIVATE.search(data)
    if not found or _SEALED not in data:
        return data
    try:
        key = tls.read_key(data, passphrase)
    except (ValueError, TypeError):
        what = "the passphrase does not open" if passphrase else "a passphrase seals"
        raise BadInput(
            f"{what} the keys in the backup",
            hint="moorage restore --passphrase-file SECRET FILE",
        ) from None
    return tls.key_pem(key) + data[found.end() :]


def sealed(source: Path) -> bool:
    """Whether the keys in a backup are sealed.

    Raises
    ------
    BadInput
        If it is none.
    """
    return any(_SEALED in data for data in _keys(read(source)[1]).values())


def _keys(members: Mapping[str, bytes]) -> dict[str, bytes]:
    return {one: data for one, data in members.items() if one.startswith(_KEYS)}


def _taken(places: MasterPlaces, copy: Path) -> dict[str, bytes]:
    """Copy the store as it is at one moment; return the keys of that moment."""
    while True:
        keys = read_keys(places.keys)
        copy.unlink(missing_ok=True)
        try:
            _copied(places, copy)
        except sqlite3.Error as error:
            raise Failed(
                f"{places.store} cannot be copied: {error}", hint=ADVICE
            ) from error
        if read_keys(places.keys) == keys:
            return keys


def _copied(places: MasterPlaces, copy: Path) -> None:
    settings = etcd_of(places.store)
    if settings:
        lay(copy, *asyncio.run(_whole(settings)))
    else:
        copied(places.store, copy)


async def _whole(settings: EtcdSettings) -> tuple[Head, Mapping[Key, bytes]]:
    store = EtcdStore(settings)
    try:
        return await store.whole()
    finally:
        await store.close()


def _manifest(found: Inspection, members: dict[str, bytes]) -> Manifest:
    config, _ = loaded(found.records)
    return Manifest(
        cluster=config.cluster.cluster_name,
        software=__version__,
        time=time.time(),
        version=found.version,
        term=found.term,
        sums={name: _sum(data) for name, data in members.items()},
    )


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(target: Path, members: dict[str, bytes]) -> None:
    draft = target.with_name(f".{target.name}.draft")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            _pack(file, members)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, target)  # and over no file that came meanwhile
    finally:
        draft.unlink()
    durable.sync(target.absolute().parent)


def _pack(file: IO[bytes], members: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
            tar.addfile(member, io.BytesIO(data))


def read(source: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Return what is in a backup.

    Raises
    ------
    BadInput
        If it is none, or not what was written.
    """
    try:
        with tarfile.open(source) as tar:
            members = {one.name: _member(tar, one) for one in tar}
        manifest = json.decode(members.pop(_MANIFEST), type=Manifest)
    except (tarfile.TarError, KeyError, DecodeError, *_CUT_OFF) as error:
        raise BadInput(f"{source} is no backup of a cluster: {error}") from None
    for name in sorted(manifest.sums.keys() | members.keys()):
        if manifest.sums.get(name) != _sum(members.get(name, b"")):
            raise BadInput(
                f"{source} is damaged: its {name} is not what was written",
                hint="take another backup",
            )
    return manifest, members


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member) if member.size <= _MOST else None
    if file is None:
        raise KeyError(f"it has a member {member.name!r}")
    return file.read()


def restore(
    places: MasterPlaces,
    node: NodePlaces,
    source: Path,
    *,
    force: bool = False,
    passphrase: bytes = b"",
) -> tuple[Manifest, list[str]]:
    """Lay a backup where a master finds it; return what it is, and what is to be told.

    Its term becomes higher than any that a node has heard. Where this machine is a node
    of the cluster, the master is on it from then on.

    Parameters
    ----------
    force
        Though the nodes hear a master, or tell nothing.
    passphrase
        Opens the keys, where they are sealed.

    Raises
    ------
    BadInput
        If it is no backup, or the passphrase does not open its keys.
    Exists
        If there is a cluster here.
    WrongState
        If its master is alive.
    """
    if places.store.exists() or places.etcd.exists():
        raise Exists(
            f"there is a cluster in {places.root}",
            hint=f"moorage master stop; mv {places.root} {places.root}.old",
        )
    manifest, members = read(source)
    for name, data in _keys(members).items():
        members[name] = _opened(data, passphrase)
    claim(places.root, KEPT, given=True)
    with drafted(places) as draft:
        for name, data in members.items():
            durable.write(draft / _named(name), data)
        told = asyncio.run(_prepared(draft, node, force=force))
        # The keys count first, and then the store.
        shutil.rmtree(places.keys, ignore_errors=True)
        (draft / "keys").replace(places.keys)
        (draft / _STORE).replace(places.store)
    return manifest, told


def _named(name: str) -> str:
    """Return the name of a member, if a backup has such one."""
    head, _, tail = name.rpartition("/")
    if name != _STORE and (f"{head}/" != _KEYS or tail in ("", ".", "..")):
        raise BadInput(f"a backup has no member '{name}'")
    return name


async def _prepared(draft: Path, node: NodePlaces, *, force: bool) -> list[str]:
    """Make a store that was put back one that nodes take orders of."""
    path = draft / _STORE
    config_store, _ = await ConfigStore.open(store_at(path))
    try:
        votes = await _heard(config_store.config, draft / "keys")
        if not force:
            _check(config_store.config, votes)
        own = _own(config_store.config, node)
        keepers = voting.keepers(config_store.config)
        term = votes.highest(config_store.term, keepers) + LEAP
        away = (
            own
            and config_store.config.node(own).uuid
            != config_store.config.cluster.master_node
        )
    finally:
        await config_store.close()
    if own and away:
        await hand_over(path, own, term)
    else:
        raise_term(path, term)
    return [f"{name} gives no answer ({why})" for name, why in votes.silent.items()]


async def _heard(config: Config, keys: Path) -> voting.Votes:
    async with voting.asking(Authority(keys)) as nodes:
        return await voting.ask(nodes, config.online(), GetStanding(), 0)


def _check(config: Config, votes: voting.Votes) -> None:
    alive = [one.name for one in config.named(Node) if votes.hears(one.name)]
    if alive:
        raise WrongState(
            f"the nodes hear a master on {alive[0]}: with a state that was put back "
            "there would be two",
            hint=f"on {alive[0]}: moorage master stop; then wait for 20 seconds",
        )
    if not votes.said:
        why = next(iter(votes.silent.values()), "all are marked offline")
        raise Failed(
            f"no node tells which masters it has heard ({why}): they may refuse the "
            "one that starts here",
            hint="start their agents, or: moorage restore --force FILE",
        )


def _own(config: Config, node: NodePlaces) -> str | None:
    """Return the name of this machine's node, if the cluster knows it."""
    if not enrolment.joined(node.keys):
        return None
    name = enrolment.name(node.keys)
    return name if config.knows(Node, name) else None
