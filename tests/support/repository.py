# SPDX-License-Identifier: BSD-2-Clause
"""An apt repository, signed with a key that is thrown away."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

SCRIPT = Path(__file__).parents[2] / "scripts" / "make-repo.sh"
KEY = "packages@example.org"


class Keyring:
    """A gpg of its own, with one secret key; its agent ends with it."""

    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700)
        self._env = {**os.environ, "GNUPGHOME": str(home)}

    def __enter__(self) -> Self:
        user = f"Throw away <{KEY}>"
        words = ("--passphrase", "", "--quick-generate-key", user, "ed25519", "sign")
        self._gpg("--quiet", *words, "1d")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        argv = ["gpgconf", "--kill", "all"]
        subprocess.run(argv, env=self._env, check=True, stdin=subprocess.DEVNULL)

    def put(self, repository: Path, *packages: Path, key: str = KEY) -> str:
        """Add packages to a repository; return what the script says of it."""
        argv = [SCRIPT, repository, key, *packages]
        done = subprocess.run(
            argv, check=False, env=self._env, capture_output=True, text=True
        )
        assert (done.returncode == 0) == (not done.stderr), done.stderr
        return done.stderr

    def listed(self) -> str:
        """Return which secret keys it has."""
        return self._gpg("--list-secret-keys")

    def _gpg(self, *words: str) -> str:
        argv = ["gpg", "--batch", *words]
        return subprocess.check_output(
            argv, env=self._env, text=True, stdin=subprocess.DEVNULL
        )
