# SPDX-License-Identifier: BSD-2-Clause
"""Images by an address, or with a checksum: fetched once, verified, and kept.

A file is kept under its checksum, so what is there is whole and verified. Whoever wants
one that is being fetched waits for it.
"""

import fcntl
import hashlib
import os
import shutil
import stat
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast
from urllib.request import BaseHandler, HTTPRedirectHandler, Request

from moorage import durable
from moorage.errors import BadInput, Failed

from .catalogue import Source

_SILENCE = 60.0
"""Seconds that a server may say nothing."""
_PIECE = 1 << 20
_LARGEST = 64 << 30
"""Bytes of an image; a server that sends without end is given up."""
_RESERVE = 512 << 20
"""Bytes of the cache's file system that a fetch leaves free."""
_LIST = 4 << 20
"""Bytes of a list of checksums."""

Told = Callable[[int, int], None]
"""Gets the bytes that are there, and how many there will be (0: unknown)."""


def opened(source: Source, cache: Path, told: Told) -> IO[bytes]:
    """Return an image, open for reading and verified where it has a checksum.

    Parameters
    ----------
    cache
        Where images are kept: a directory of root's alone, which is made.

    Raises
    ------
    Failed
        If it is not there, is no regular file, or cannot be fetched.
    BadInput
        If it is not what its checksum says.
    """
    if not source.remote and not source.checksum[0]:
        return local(source.image)
    durable.make(cache)
    algorithm, digits = source.checksum
    if not algorithm:
        algorithm, digits = _looked_up(source)
    path = cache / f"{algorithm}-{digits}"
    with _alone(path.with_name(f"{path.name}.lock")):
        if not path.exists():
            _fetch(source, path, (algorithm, digits), told)
        return path.open("rb")


def local(path: str) -> IO[bytes]:
    """Return a file of the node, open for reading.

    Raises
    ------
    Failed
        If it is a link, which others may have put in its place, or no regular file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        found = os.open(path, flags)
    except OSError as error:
        why = "it is a symbolic link" if Path(path).is_symlink() else error.strerror
        raise Failed(f"the image {path} is not opened: {why}") from None
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise Failed(f"the image {path} is not opened: it is no regular file")
    return os.fdopen(found, "rb")


@contextmanager
def _alone(path: Path, more: int = 0) -> Iterator[None]:
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | more)
        yield
    finally:
        os.close(held)


def _fetch(source: Source, path: Path, wanted: tuple[str, str], told: Told) -> None:
    algorithm, digits = wanted
    draft = path.with_name(f"{path.name}.part")
    _clear(draft)
    found = hashlib.new(algorithm)
    try:
        stream, total = _source(source)
        done = 0
        with stream, draft.open("wb") as kept:
            _check_room(source, path.parent, total)
            while piece := stream.read(_PIECE):
                done += len(piece)
                if done > _LARGEST:
                    raise Failed(f"{source.image} has more than {_LARGEST >> 30} GiB")
                _check_room(source, path.parent, len(piece))
                found.update(piece)
                kept.write(piece)
                told(done, total)
            kept.flush()
            os.fsync(kept.fileno())
        if found.hexdigest() != digits:
            raise BadInput(
                f"{source.image} is not the image that was meant: its {algorithm} is "
                f"{found.hexdigest()}, not {digits}"
            )
        draft.replace(path)
        durable.sync(path.parent)
    except (OSError, HTTPException) as error:  # URLError is an OSError
        raise Failed(f"{source.image} cannot be fetched: {_why(error)}") from None
    finally:
        draft.unlink(missing_ok=True)


def _clear(own: Path) -> None:
    """Remove what other fetches left that were killed."""
    for draft in own.parent.glob(f"*{own.suffix}"):
        lock = draft.with_suffix(".lock")
        if draft != own:
            with suppress(BlockingIOError), _alone(lock, fcntl.LOCK_NB):
                draft.unlink(missing_ok=True)


def _check_room(source: Source, cache: Path, size: int) -> None:
    """Raise `Failed` unless so many bytes more leave the reserve."""
    free = shutil.disk_usage(cache).free - _RESERVE
    if size > free:
        raise Failed(
            f"{source.image} is not kept: it needs {-(-size >> 20)} MiB more in "
            f"{cache}, and {max(free, 0) >> 20} MiB are there, but for a reserve of "
            f"{_RESERVE >> 20} MiB"
        )


def _source(source: Source) -> tuple[IO[bytes], int]:
    """Return what is read, and how many bytes that will be (0: unknown)."""
    if not source.remote:
        file = local(source.image)
        return file, os.fstat(file.fileno()).st_size
    answer = _asked(source.image)
    told = answer.headers.get("Content-Length") or ""
    return cast("IO[bytes]", answer), int(told) if told.isdecimal() else 0


def _asked(address: str, *handlers: BaseHandler) -> HTTPResponse:
    # The catalogue is root's own, and says http or https.
    opener = urllib.request.build_opener(*handlers)
    return cast("HTTPResponse", opener.open(address, timeout=_SILENCE))


class HttpsAlone(HTTPRedirectHandler):
    """Follows no redirect that is not https, also not on the way to one that is."""

    def redirect_request(self, *given: Any) -> Request | None:  # noqa: ANN401
        """Return the next request, whose address is the last argument."""
        if not str(given[-1]).startswith("https://"):
            told = f"{given[0].full_url} leads to an address that is not https"
            raise Failed(told)
        return super().redirect_request(*given)


def _looked_up(source: Source) -> tuple[str, str]:
    """Return the checksum that a list says."""
    try:
        with _asked(source.sums, HttpsAlone()) as stream:
            text = stream.read(_LIST).decode(errors="replace")
    except (OSError, HTTPException) as error:
        raise Failed(f"{source.sums} cannot be fetched: {_why(error)}") from None
    name = PurePosixPath(source.image).name
    for line in text.splitlines():
        digits, _, named = line.partition(" ")
        if named.lstrip(" *") == name:
            algorithm = {64: "sha256", 128: "sha512"}.get(len(digits), "")
            if algorithm and not set(digits.lower()) - set("0123456789abcdef"):
                return algorithm, digits.lower()
    raise Failed(f"{source.sums} has no checksum of {name}")


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
    return str(reason or error) or type(error).__name__
