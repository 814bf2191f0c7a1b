# SPDX-License-Identifier: BSD-2-Clause
"""What a volume can be: its size, its texts, its metadata."""

from collections.abc import Mapping

from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest

MAX_METADATA = 10
MAX_KEY = 64
MAX_TEXT = 255


def check_size(size: object) -> None:
    """Refuse what is no size of a volume, GiB."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise BadRequest(f"the size of a volume is a whole number of GiB, not '{size}'")
    if size > CONF.max_volume_size:
        raise BadRequest(
            f"a volume has at most {CONF.max_volume_size} GiB, not {size} GiB"
        )


def check_text(what: str, text: str) -> None:
    """Refuse a text that is too long."""
    if len(text) > MAX_TEXT:
        raise BadRequest(
            f"{what} has {len(text)} characters, more than {MAX_TEXT} are not possible"
        )


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Refuse metadata that is too much."""
    if len(metadata) > MAX_METADATA:
        raise BadRequest(
            f"a volume has at most {MAX_METADATA} items of metadata, not "
            f"{len(metadata)}"
        )
    for key, value in metadata.items():
        if not 1 <= len(key) <= MAX_KEY:
            raise BadRequest(
                f"a key of metadata has 1 to {MAX_KEY} characters: '{key}'"
            )
        if len(value) > MAX_TEXT:
            raise BadRequest(
                f"the value of '{key}' has more than {MAX_TEXT} characters"
            )
