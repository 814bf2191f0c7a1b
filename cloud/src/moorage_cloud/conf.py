# SPDX-License-Identifier: BSD-2-Clause
"""What an administrator sets: a TOML file, read once when the service starts."""

import os
import re
import tomllib
from pathlib import Path

from msgspec import Struct, ValidationError, convert, field

WHERE = "MOORAGE_CLOUD"
"""The variable that names the file."""
USUAL = Path("/etc/moorage/cloud.toml")
_URL = re.compile(r"https?://[^/?#\s\"]+(/[^?#\s\"]*)?")


class Quota(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a project has unless it was given something else; -1 is no limit."""

    volumes: int = 10
    gigabytes: int = 1000
    snapshots: int = 10


class Conf(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a cloud.

    Attributes
    ----------
    database
        A file for SQLite, or ``postgresql://USER@HOST/NAME``.
    key_file
        A file with at least 50 characters that only the service can read; made at the
        first start.
    prefix
        What the names of instances, volumes and snapshots begin with.
    max_volume_size
        The largest size that a volume can have, in GiB.
    max_disks
        How many disks an instance can have.
    look_after
        Seconds after which a job that nothing was heard of is looked at; each look at
        one that is under way doubles them.
    timeout
        Seconds without a word after which a cluster does not answer.
    lease
        Seconds that a worker has for one request to a cluster; then another one asks
        again, with the same key.
    allowed_hosts
        Names by which clients may call the service; ``*`` is any.
    url
        The address under which clients reach the service, such as
        ``https://cloud.example.org``; links and the catalog begin with it. Without one,
        they begin as the request did.
    policy_file
        Rules that differ from the defaults, in the form that OpenStack's services have.
    token_lasts
        Seconds that a token is good for.
    zone
        The only availability zone, in which all volumes and servers are.
    admin_at
        Addresses such as ``https://cloud.example.org`` at which administrators have
        pages (``/admin``); none for no pages.
    metrics_key_file
        A file with what ``/metrics`` asks for, at least 16 characters; without one,
        nobody is told metrics.
    metrics_dir
        A directory for what several web processes count together, to be empty when they
        are started; without one each tells what itself has counted.
    worker_gone
        Seconds without a sign of any worker after which ``/healthcheck`` says so.
    quota
        What a project has by default.
    """

    database: str = "/var/lib/moorage-cloud/cloud.sqlite"
    key_file: str = "/var/lib/moorage-cloud/secret-key"
    prefix: str = "snf-"
    max_volume_size: int = 16384
    max_disks: int = 16
    look_after: float = 5.0
    timeout: float = 30.0
    lease: float = 90.0
    allowed_hosts: tuple[str, ...] = ("*",)
    url: str = ""
    policy_file: str = "/etc/moorage/policy.yaml"
    token_lasts: float = 3600.0
    zone: str = "nova"
    admin_at: tuple[str, ...] = ()
    metrics_key_file: str = ""
    metrics_dir: str = ""
    worker_gone: float = 60.0
    quota: Quota = field(default_factory=Quota)

    def __post_init__(self) -> None:
        """Refuse an address that no link can begin with."""
        if self.url and not _URL.fullmatch(self.url):
            raise ValueError(
                f"url is to be http(s)://HOST[:PORT][/PATH], not {self.url}"
            )


def read(path: Path | None = None) -> Conf:
    """Return what a file says; without one, what is usual.

    Raises
    ------
    SystemExit
        If the file is no such file, in one sentence.
    """
    named = os.environ.get(WHERE)
    path = path or (Path(named) if named else USUAL)
    if not path.exists():
        if named:
            raise SystemExit(f"there is no file {path}, which {WHERE} names")
        return Conf()
    try:
        return convert(tomllib.loads(path.read_text()), Conf)
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise SystemExit(f"{path}: {error}") from None


CONF = read()
