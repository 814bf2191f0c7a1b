# SPDX-License-Identifier: BSD-2-Clause
"""Where etcd is, and as whom a master speaks to it."""

import ipaddress
import ssl
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import DecodeError, Meta, Struct, ValidationError, json

from moorage.errors import BadInput
from moorage.model.misfit import misfit

SCHEME = "etcd"
_DEFAULT_PORT = 2379


class EtcdSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How etcd is reached.

    Attributes
    ----------
    endpoints
        ``https://HOST:PORT`` of each member; ``http://`` on this machine only.
    prefix
        What the keys of this cluster begin with; nobody else may use them.
    ca, certificate, key
        Files in PEM: who signs the members, and what this side shows.
    user, password
        Of etcd; empty where its authentication is off.
    lease
        Seconds that a lead lasts which nobody renews; etcd may make it longer.
    node
        Uuid of the node on whose machine this master is.
    cluster
        Drawn when the cluster is made: another one's state is never taken for ours.
    """

    endpoints: Annotated[tuple[str, ...], Meta(min_length=1)]
    prefix: str = "/moorage"
    ca: str = ""
    certificate: str = ""
    key: str = ""
    user: str = ""
    password: str = ""
    lease: Annotated[int, Meta(ge=2, le=60)] = 5
    cluster: str = ""
    node: str = ""

    @property
    def label(self) -> str:
        """How sentences name it."""
        hosts = ",".join(urlsplit(one).netloc for one in self.endpoints)
        return f"{SCHEME}://{hosts}{self.prefix}"

    def tls(self) -> ssl.SSLContext | None:
        """Return what a connection is secured with; None without TLS.

        Raises
        ------
        BadInput
            If a file cannot be read, or is none of its kind.
        """
        if not self.ca:
            return None
        try:
            made = ssl.create_default_context(cafile=self.ca)
            if self.certificate:
                made.load_cert_chain(self.certificate, self.key or None)
        except OSError as error:  # of which ssl's are some
            files = ", ".join(filter(None, (self.ca, self.certificate, self.key)))
            raise BadInput(f"etcd's keys ({files}) cannot be used: {error}") from None
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        return made


def settings_from(word: str) -> EtcdSettings:
    """Return the settings in ``etcd://HOST:PORT,…/PREFIX``, or in a file of them.

    Raises
    ------
    BadInput
        If they are off.
    """
    if word.startswith(f"{SCHEME}://"):
        return _checked(_of_url(word))
    try:
        return read(Path(word).read_bytes(), word)
    except OSError as error:
        raise BadInput(
            f"{word} is no {SCHEME}://HOST:PORT,…/PREFIX and no file of settings: "
            f"{error.strerror}"
        ) from None


def read(data: bytes, name: str) -> EtcdSettings:
    """Return the settings in a file's content; raise `BadInput` if it has none."""
    try:
        return _checked(json.decode(data, type=EtcdSettings))
    except ValidationError as error:
        raise BadInput(f"{name}: {misfit(error)}") from None
    except (DecodeError, UnicodeError) as error:
        raise BadInput(f"{name} is no JSON: {error}") from None


def to_bytes(settings: EtcdSettings) -> bytes:
    """Return a file's content."""
    return json.format(json.encode(settings))


def _of_url(word: str) -> EtcdSettings:
    hosts, slash, prefix = word.removeprefix(f"{SCHEME}://").partition("/")
    endpoints = tuple(f"http://{one}" for one in hosts.split(",") if one)
    if not endpoints:
        raise BadInput(f"{word} names no member: {SCHEME}://HOST:PORT,…/PREFIX")
    if slash and prefix:
        return EtcdSettings(endpoints=endpoints, prefix=f"/{prefix}")
    return EtcdSettings(endpoints=endpoints)


def _checked(given: EtcdSettings) -> EtcdSettings:
    for one in given.endpoints:
        _check_endpoint(given, one)
    words = given.prefix.split("/")
    if words[0] or not all(words[1:]) or len(words) == 1:
        raise BadInput(
            f"the prefix '{given.prefix}' is not as /NAME: it begins with a slash, "
            "and ends with none"
        )
    if bool(given.user) != bool(given.password):
        raise BadInput("etcd's user and password go together: one of them is missing")
    if given.certificate and not given.ca:
        raise BadInput("a certificate for etcd needs the file of who signs its members")
    for name in ("ca", "certificate", "key"):
        path = getattr(given, name)
        if path and not Path(path).is_absolute():
            raise BadInput(
                f"'{name}' is no absolute path: '{path}'; a master has no other place "
                "to look from"
            )
    return given


def _check_endpoint(given: EtcdSettings, endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError:
        raise BadInput(f"'{endpoint}' is no address of a member of etcd") from None
    bare = (parts.path, parts.query, parts.fragment, parts.username) == ("",) * 3 + (
        None,
    )
    if parts.scheme not in ("http", "https") or not parts.hostname or not bare:
        raise BadInput(f"'{endpoint}' is not as https://HOST:{_DEFAULT_PORT}")
    if parts.scheme == "http" and not _is_local(parts.hostname):
        raise BadInput(
            f"the state would go to {parts.hostname} in clear, and whoever is on the "
            "way could change it",
            hint="give a file of settings with https:// and ca, certificate and key",
        )
    if parts.scheme == "https" and not given.ca:
        raise BadInput(f"{endpoint} needs 'ca': the file of who signs etcd's members")


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
