# SPDX-License-Identifier: BSD-2-Clause
"""Where a cluster is: behind a door on the network, or behind its master's socket."""

from typing import TYPE_CHECKING, NamedTuple

from moorage.errors import BadInput

if TYPE_CHECKING:  # start-up time
    from ssl import SSLContext

PORT = 5080


class Socket(NamedTuple):
    """The master's socket, on its machine.

    Attributes
    ----------
    other
        The socket of who knows the master, for when there is none; empty for nobody.
    """

    path: str
    other: str = ""


class Door(NamedTuple):
    """A door on the network, and who comes to it.

    Attributes
    ----------
    token, user, password
        What opens it: a token, or a user's password.
    ca
        A file of certificates (PEM) that are believed; empty for those of the system.
    """

    host: str
    port: int
    token: str = ""
    user: str = ""
    password: str = ""
    ca: str = ""

    def __repr__(self) -> str:
        return f"Door({self.url})"

    @property
    def url(self) -> str:
        """Its address, without anything secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"

    @property
    def authorization(self) -> str:
        """The header that says who asks."""
        from base64 import b64encode  # noqa: PLC0415 - start-up time

        if self.token:
            return f"Bearer {self.token}"
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {b64encode(pair).decode()}"

    def trust(self) -> "SSLContext":
        """Return whose certificates are believed.

        Raises
        ------
        BadInput
            If the file of certificates cannot be read.
        """
        import ssl  # noqa: PLC0415 - start-up time

        try:
            return ssl.create_default_context(cafile=self.ca or None)
        except OSError as error:
            why = error.strerror or error
            raise BadInput(f"no certificates can be read in {self.ca}: {why}") from None


def door(
    url: str, *, token: str = "", user: str = "", password: str = "", ca: str = ""
) -> Door:
    """Return where a URL leads; user and password may stand in it.

    Raises
    ------
    BadInput
        If it is no URL of a door, or nothing opens that.

    >>> door("https://anna:secret@cluster.example.org").url
    'https://cluster.example.org:5080'
    """
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - start-up time

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")  # as who looks it up does
    except ValueError:  # whose words may have a piece of the password
        raise BadInput(
            "the address of the cluster cannot be read",
            hint="write https://HOST:5080, and what is odd in a password as %2F",
        ) from None
    beyond = parts.path.strip("/") or parts.query
    if parts.scheme != "https" or not host or " " in host or beyond:
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise BadInput(
            f"'{shown}' is no address of a cluster", hint="write https://HOST:5080"
        )
    user = unquote(parts.username or "") or user
    password = unquote(parts.password or "") or password
    found = Door(host, port or PORT, token, user, password, ca)
    if not token and not (user and password):
        raise BadInput(
            f"nothing opens {found.url}: a token, or user and password, is needed"
        )
    for secret in (token, user, password):
        if not secret.isprintable():
            raise BadInput(f"what is to open {found.url} is not printable")
    if not token.isascii():
        raise BadInput(
            f"the token that is to open {found.url} is none: it is not ASCII"
        )
    return found
