# SPDX-License-Identifier: BSD-2-Clause
"""The images that an administrator offers: a file a variant, root's own."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from moorage.errors import BadInput, Failed, NotFound
from moorage.node.machine.trust import distrust

_DIGITS = {"sha256": 64, "sha512": 128}
"""Hexadecimal digits of a checksum."""
_WEB = ("http://", "https://")


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an image comes from.

    Attributes
    ----------
    image
        An absolute path on the node, or an address (http, https).
    sha256, sha512
        What the file must have; one of them, or `sums`, where it comes by an address.
    sums
        Address (https) of a list of such checksums, as ``sha512sum`` prints it.
    format
        ``qcow2`` or ``raw``; empty to look at the first bytes.
    """

    image: str
    sha256: str = ""
    sha512: str = ""
    sums: str = ""
    format: str = ""

    @property
    def remote(self) -> bool:
        """Whether it has to be fetched."""
        return self.image.startswith(_WEB)

    @property
    def checksum(self) -> tuple[str, str]:
        """The algorithm and the digits; empty where none is named."""
        for name in _DIGITS:
            if digits := getattr(self, name):
                return name, digits.lower()
        return "", ""

    def problem(self) -> str:
        """Return what is wrong with it; empty if nothing is."""
        return next(self._problems(), "")

    def _problems(self) -> Iterator[str]:
        named = [name for name in (*_DIGITS, "sums") if getattr(self, name)]
        if len(named) > 1:
            yield f"{' and '.join(named)} are given: one is enough"
        for name, number in _DIGITS.items():
            digits = getattr(self, name)
            if digits and not re.fullmatch(f"[0-9a-fA-F]{{{number}}}", digits):
                yield f"{name} is not {number} hexadecimal digits"
        if self.format not in ("", "qcow2", "raw"):
            yield f"format is qcow2 or raw, not {self.format}"
        yield from self._local_problems() if not self.remote else ()
        if self.remote and not named:
            yield "an image from an address needs sha512, or sums"
        if self.sums and not self.sums.startswith("https://"):
            yield "sums is no address that begins with https://"

    def _local_problems(self) -> Iterator[str]:
        if self.sums:
            yield "sums is for an image from an address"
        if not self.image.startswith("/"):
            yield "image is no path and no address"


def read(directory: Path, variant: str) -> Source:
    """Return what a variant stands for.

    Raises
    ------
    NotFound
        If there is no file of it.
    BadInput
        If it says what it cannot.
    Failed
        If others than root may change it, or it cannot be read.
    """
    path = directory / f"{variant}.toml"
    told = distrust(path)
    if told:
        raise Failed(f"{path} is not believed: {told}", hint=f"chown root {path}")
    try:
        found = convert(tomllib.loads(path.read_text()), Source)
    except FileNotFoundError:
        raise NotFound(f"there is no image '{variant}': {path} would name it") from None
    except (tomllib.TOMLDecodeError, ValidationError, UnicodeError) as error:
        raise BadInput(f"{path} names no image: {error}") from None
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    if problem := found.problem():
        raise BadInput(f"{path} names no image: {problem}")
    return found
