# SPDX-License-Identifier: BSD-2-Clause
"""URIs of disks without a block device, in QEMU's words, as options of ``-blockdev``.

Providers print the file names that QEMU's ``-drive`` took; ``-blockdev`` takes options
only. Pure: no disk and no network is looked at.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from moorage.errors import BadInput, NotSupported

Node = dict[str, Any]
"""Options of one block node, without its name."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_NBD_PORT, _GLUSTER_PORT, _ISCSI_PORT, _CEPH_PORT = "10809", "24007", "3260", "6789"


def protocol_node(uri: str) -> Node:
    """Return the options of the block node that reaches `uri`.

    Raises
    ------
    NotSupported
        If the scheme or one of its options is unknown.
    BadInput
        If the URI lacks a part.

    >>> protocol_node("nbd:unix:/run/x.sock:exportname=d")["export"]
    'd'
    """
    scheme = uri.partition(":")[0].lower()
    reader = _READERS.get(scheme)
    if reader is None or not _SCHEME.fullmatch(scheme):
        raise NotSupported(
            f"the kvm hypervisor knows no URI of the form '{uri}'",
            hint=f"it knows {', '.join(sorted(_READERS))}",
            uri=uri,
        )
    try:
        return reader(uri)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"'{uri}' is not a valid {scheme} URI", uri=uri) from error


def image_name(uri: str) -> str:
    """Return what ``qemu-img`` and its kin take for the raw image at `uri`.

    Raises
    ------
    NotSupported, BadInput
        As :func:`protocol_node` does.

    >>> image_name("file:/srv/a.img")
    'json:{"driver": "raw", "file": {"driver": "file", "filename": "/srv/a.img"}}'
    """
    return "json:" + json.dumps({"driver": "raw", "file": protocol_node(uri)})


def local_files(uri: str) -> tuple[str, ...]:
    """Return the files and devices of this node that are opened for a URI.

    Whoever uses the URI opens them first, for somebody may put a link in their place.
    None of a URI that QEMU does not know.

    >>> local_files(image_name("file:/srv/a.img"))
    ('/srv/a.img',)
    """
    try:
        return tuple(_files(protocol_node(uri)))
    except (NotSupported, BadInput):
        return ()


def with_files(uri: str, words: Mapping[str, str]) -> str:
    """Return a URI with other words for its files.

    >>> with_files("file:/srv/a.img", {"/srv/a.img": "/proc/self/fd/7"})
    'file:/proc/self/fd/7'
    """
    if words.keys().isdisjoint(local_files(uri)):
        return uri
    node = renamed(protocol_node(uri), words)
    if uri.startswith("json:"):
        return "json:" + json.dumps(node)
    return f"file:{node['filename']}"


def renamed(node: Node, words: Mapping[str, str]) -> Node:
    """Return a node with other words in the place of some, at any depth."""
    return {
        name: renamed(one, words)
        if isinstance(one, dict)
        else (words.get(one, one) if isinstance(one, str) else one)
        for name, one in node.items()
    }


def _files(node: Node) -> Iterator[str]:
    match node:
        case {"driver": "file" | "host_device", "filename": str(path)}:
            yield path
    for one in node.values():
        if isinstance(one, dict):
            yield from _files(one)


def inet(host: str, port: str) -> Node:
    """Return a TCP address."""
    return {"type": "inet", "host": host.strip("[]"), "port": port}


def _required(value: str | None) -> str:
    if not value:
        raise ValueError
    return value


def _query(parts: SplitResult, known: set[str]) -> dict[str, str]:
    given = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    _refuse_unknown(parts.scheme, given, known)
    return given


def _refuse_unknown(scheme: str, given: Mapping[str, str], known: set[str]) -> None:
    strange = sorted(set(given) - known)
    if strange:
        raise NotSupported(
            f"the kvm hypervisor knows no option '{strange[0]}' of {scheme} URIs",
            hint=f"it knows {', '.join(sorted(known)) or 'none'}",
        )


def _host(parts: SplitResult, default: str) -> Node:
    return inet(_required(parts.hostname), str(parts.port or default))


_NAME = r"(?::exportname=(?P<name>.*))?"
_OLD_NBD_UNIX = re.compile(r"(?i:nbd):unix:(?P<path>.+?)" + _NAME)
_OLD_NBD_TCP = re.compile(r"(?i:nbd):(?P<host>\[[^]]+\]|[^:/]+):(?P<port>\d+)" + _NAME)


def _nbd(uri: str) -> Node:
    if uri.lower().startswith("nbd://"):
        return _nbd_url(uri)
    if found := _OLD_NBD_UNIX.fullmatch(uri):
        return _exported({"type": "unix", "path": found["path"]}, found["name"])
    if found := _OLD_NBD_TCP.fullmatch(uri):
        return _exported(inet(found["host"], found["port"]), found["name"])
    raise ValueError


def _nbd_url(uri: str) -> Node:
    parts = urlsplit(uri)
    _query(parts, set())
    return _exported(_host(parts, _NBD_PORT), unquote(parts.path[1:]))


def _nbd_unix_url(uri: str) -> Node:
    parts = urlsplit(uri)
    path = _query(parts, {"socket"})["socket"]
    return _exported({"type": "unix", "path": path}, unquote(parts.path[1:]))


def _exported(server: Node, name: str | None) -> Node:
    return {"driver": "nbd", "server": server} | ({"export": name} if name else {})


_RBD_PART = re.compile(r"((?:\\.|[^\\:])*)(?::|$)")


def _rbd(uri: str) -> Node:
    image, *words = _unescaped_parts(uri.partition(":")[2])
    given = dict(word.split("=", 1) for word in words)
    _refuse_unknown("rbd", given, {"conf", "id", "mon_host"})
    node = {"driver": "rbd", **_rbd_image(image)}
    if "conf" in given:
        node["conf"] = given["conf"]
    if "id" in given:
        node["user"] = given["id"]
    if "mon_host" in given:
        node["server"] = _monitors(given["mon_host"])
    return node


def _unescaped_parts(text: str) -> list[str]:
    """Return the parts between colons; a backslash takes the next sign as it is."""
    found = [match[1] for match in _RBD_PART.finditer(text) if match[0]]
    return [re.sub(r"\\(.)", r"\1", part) for part in found]


def _rbd_image(text: str) -> Node:
    path, _, snapshot = text.partition("@")
    pool, *space, image = path.split("/")
    node = {"pool": _required(pool), "image": _required(image)}
    if space:
        node["namespace"] = "/".join(space)
    return node | ({"snapshot": snapshot} if snapshot else {})


def _monitors(text: str) -> list[Node]:
    servers = []
    for word in re.split(r"[;,\s]+", text):
        host, _, port = word.rpartition(":")
        alone = not host or word.endswith("]")
        servers.append({"host": (word if alone else host).strip("[]")})
        servers[-1]["port"] = _CEPH_PORT if alone else port
    return list(servers)


def _iscsi(uri: str) -> Node:
    parts = urlsplit(uri)
    _query(parts, set())
    if parts.username:
        raise NotSupported("the kvm hypervisor takes no password in iscsi URIs")
    target, lun = parts.path.strip("/").rsplit("/", 1)
    portal = f"{_required(parts.netloc)}"
    return {
        "driver": "iscsi",
        "transport": "tcp",
        "portal": portal if parts.port else f"{portal}:{_ISCSI_PORT}",
        "target": _required(target),
        "lun": int(lun),
    }


def _gluster(uri: str) -> Node:
    parts = urlsplit(uri)
    given = _query(parts, {"socket", "debug", "logfile"})
    volume, path = unquote(parts.path).strip("/").split("/", 1)
    local = parts.scheme == "gluster+unix"
    server = (
        {"type": "unix", "path": given["socket"]}
        if local
        else _host(parts, _GLUSTER_PORT)
    )
    node: Node = {"driver": "gluster", "volume": volume, "path": _required(path)}
    node["server"] = [server]
    if "debug" in given:
        node["debug"] = int(given["debug"])
    return node | ({"logfile": given["logfile"]} if "logfile" in given else {})


def _file(uri: str) -> Node:
    path = uri.partition(":")[2]
    if path.startswith("//"):
        path = unquote(_required(urlsplit(uri).path))
    return {"driver": "file", "filename": _required(path)}


def _json(uri: str) -> Node:
    node: Node = json.loads(uri.partition(":")[2])
    _required(node["driver"])
    node.pop("node-name", None)  # names are ours to give
    return node


_READERS: dict[str, Callable[[str], Node]] = {
    "nbd": _nbd,
    "nbd+tcp": _nbd_url,
    "nbd+unix": _nbd_unix_url,
    "rbd": _rbd,
    "iscsi": _iscsi,
    "gluster": _gluster,
    "gluster+tcp": _gluster,
    "gluster+unix": _gluster,
    "file": _file,
    "json": _json,
}
