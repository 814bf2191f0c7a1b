# SPDX-License-Identifier: BSD-2-Clause
"""Words of a request that templates and providers share: names, flags, values."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from moorage.errors import BadInput

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,253}")
_PROVIDER = re.compile(r"[A-Za-z0-9_-]+")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TAG = re.compile(r"[\w.+*/:@-]{1,128}", re.ASCII)
_MOST_TAGS = 4096
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OURS = re.compile(
    rf"{_UUID}(?:(\.[a-z0-9]+)?\.disk[0-9]+(?:_data|_meta)?|\.snap)(?:\.part)?"
)
"""How volumes are named that a cluster makes, Ganeti's included; see
:meth:`moorage.storage.Template.logical_id`."""
_HUGE = (1 << 31) - 1
_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})
KERNELSPACE, USERSPACE = "kernelspace", "userspace"
"""How a guest reaches a disk: by a device of its node's kernel, or by itself."""


def check_name(kind: str, name: str) -> str:
    """Return `name` if it can be one component of a path.

    Raises
    ------
    BadInput
        If it holds anything but letters, digits and ``_ . + -``, or is too long.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(f"'{name[:80]}' is not a valid name of a {kind}")
    return name


def looks_ours(volume: str, template: str) -> bool:
    """Say whether a volume of a template is named as a cluster like this one does it.

    >>> looks_ours("5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11.ext.disk0", "ext")
    True
    >>> looks_ours("/srv/images/web1/debian-12.img", "file")
    False
    """
    found = _OURS.fullmatch(PurePosixPath(volume).name)
    return found is not None and found[1] in (None, f".{template}")


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of an object.

    Raises
    ------
    BadInput
        If there are more than Ganeti allows, or one is not of its letters.
    """
    if len(tags) > _MOST_TAGS:
        raise BadInput(f"an object has at most {_MOST_TAGS} tags, not {len(tags)}")
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise BadInput(
                f"{tag[:80]!r} is not a tag: at most 128 letters, digits and . + * / : "
                "@ - _"
            )
    return tuple(tags)


def is_provider_name(name: str) -> bool:
    """Say whether a directory of this name can be a provider."""
    return bool(_PROVIDER.fullmatch(name))


def check_provider_name(name: str) -> str:
    """Return `name`, or raise `BadInput` if no provider can be called so."""
    if not is_provider_name(name):
        raise BadInput(f"'{name}' is not a valid name of an ExtStorage provider")
    return name


def check_parameter_name(name: str) -> str:
    """Return `name`, or raise `BadInput` if no variable can be made of it."""
    if not _PARAMETER.fullmatch(name):
        raise BadInput(f"'{name}' is not a valid name of a parameter")
    return name


def text(name: str, value: object) -> str:
    """Return a parameter's value as a script sees it.

    Raises
    ------
    BadInput
        If the value is no text, number or boolean, or holds a null character.
    """
    if not isinstance(value, str | int | float):
        raise BadInput(f"the value of parameter '{name}' is not plain text")
    words = str(value)
    if "\0" in words:
        raise BadInput(f"the value of parameter '{name}' holds a null character")
    return words


def flag(name: str, value: object) -> bool:
    """Return a parameter's value as a boolean.

    Raises
    ------
    BadInput
        If it is neither yes nor no, in any of the usual spellings.
    """
    words = str(value).strip().lower()
    if words not in _YES | _NO:
        raise BadInput(f"parameter '{name}' is yes or no, not '{value}'")
    return words in _YES


def number(name: str, value: object, bounds: tuple[int, int] = (1, _HUGE)) -> int:
    """Return a parameter's value as a whole number within bounds.

    Raises
    ------
    BadInput
        If it is anything else.
    """
    least, most = bounds
    words = str(value).strip()
    if not (words.isascii() and words.isdecimal() and least <= int(words) <= most):
        those = f"from {least} on" if most == _HUGE else f"from {least} to {most}"
        raise BadInput(f"parameter '{name}' is a number {those}, not '{value}'")
    return int(words)


_SYSTEM = frozenset({"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32"})
_SYSTEM |= {"proc", "root", "run", "sbin", "sys", "usr"}
_STATE = tuple(
    PurePosixPath("/var/lib", name) for name in ("ganeti", "moorage", "moorage-node")
)
"""Where this system and its forerunner keep their keys and records."""


def is_of_the_system(path: PurePosixPath) -> bool:
    """Say whether a path is none that images can be kept at: the system's, or ours.

    >>> is_of_the_system(PurePosixPath("/usr/lib"))
    True
    >>> is_of_the_system(PurePosixPath("/srv/images"))
    False
    """
    parts = path.parts
    if not path.is_absolute() or len(parts) < 2 or ".." in parts:
        return True
    return parts[1] in _SYSTEM or any(path.is_relative_to(one) for one in _STATE)


def check_image_directory(setting: str, path: str) -> None:
    """Raise `BadInput` for a directory that images cannot be kept in.

    Parameters
    ----------
    setting
        Name of the cluster's setting, for the sentence.
    """
    pure = PurePosixPath(path)
    option = setting.replace("_", "-")
    if path and not pure.is_absolute():
        raise BadInput(f"{option} is an absolute path, not '{path}'")
    if path and is_of_the_system(pure):
        raise BadInput(f"{option} cannot be {path}: system directories hold no images")


def checked_access(params: Mapping[str, Any]) -> str:
    """Return how a disk with some parameters is reached.

    Raises
    ------
    BadInput
        If there is no such way.
    """
    access = str(params.get("access", KERNELSPACE))
    if access not in (KERNELSPACE, USERSPACE):
        raise BadInput(
            f"access is {KERNELSPACE} or {USERSPACE}, not '{access}'", access=access
        )
    return access


def is_userspace(params: Mapping[str, Any]) -> bool:
    """Whether the hypervisor reaches the disk by its URI."""
    return params.get("access") == USERSPACE
