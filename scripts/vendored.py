# SPDX-License-Identifier: BSD-2-Clause
"""Fetch the libraries of others that the page's consoles are served with.

Each is a package of npm of one version, fetched by npm from wherever this machine has
packages from; what comes must have the hash that stands here.
Its files go, unchanged, where the page serves them, with `SHA256SUMS` of all.
"""

import hashlib
import io
import subprocess
import sys
import tarfile
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

HERE = Path(__file__).parent.parent / "src/moorage/web/static"
SUMS = HERE / "SHA256SUMS"


class Library(NamedTuple):
    """A library.

    Attributes
    ----------
    package
        Its name and version, as npm writes them.
    integrity
        SHA-512 of that, as npm writes it.
    where
        The directory that it is served from.
    files
        What is kept: files, and directories with all that is in them.
    """

    package: str
    integrity: str
    where: str
    files: tuple[str, ...]

    def keeps(self, name: str) -> bool:
        """Whether a file of the package is kept."""
        return any(
            name == one or (one.endswith("/") and name.startswith(one))
            for one in self.files
        )


LIBRARIES = (
    Library(
        "@xterm/xterm@6.0.0",
        "TQwDdQGtwwDt+2cgKDLn0IRaSxYu1tSUjgKarSDkUM0ZNiSRXFpjxEsvc/Zgc5kq5omJ+V0a8/kIM2WD3sMOYg==",
        "xterm-6.0.0",
        ("LICENSE", "lib/xterm.mjs", "css/xterm.css"),
    ),
    Library(
        "@novnc/novnc@1.7.0",
        "ucEJOx4T2avIRCleodk7YobZj5O2Ga2AeLfQ69A/yjG9HHba2+PDgwSkN3FttrmG+70ZGx21sElNFouK13RzyA==",
        "novnc-1.7.0",
        ("LICENSE.txt", "AUTHORS", "docs/LICENSE.MPL-2.0", "core/", "vendor/"),
    ),
)


def fetched(library: Library) -> dict[str, bytes]:
    """Return the files of a library, by their names.

    Raises
    ------
    SystemExit
        If the package is not the one that is meant.
    """
    with TemporaryDirectory() as scratch:
        subprocess.run(["npm", "pack", library.package], cwd=scratch, check=True)
        (archive,) = Path(scratch).iterdir()
        packed = archive.read_bytes()
    found = b64encode(hashlib.sha512(packed).digest()).decode()
    if found != library.integrity:
        sys.exit(f"{library.package} has the hash {found}, not {library.integrity}")
    with tarfile.open(fileobj=io.BytesIO(packed)) as package:
        return {
            name: content.read()
            for one in package
            if library.keeps(name := one.name.removeprefix("package/"))
            and (content := package.extractfile(one))
        }


def main() -> None:
    """Put all libraries in their places."""
    sums = []
    for library in LIBRARIES:
        for name, content in sorted(fetched(library).items()):
            path = HERE / library.where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            place = path.relative_to(HERE).as_posix()
            sums.append(f"{hashlib.sha256(content).hexdigest()}  {place}\n")
    SUMS.write_text("".join(sums))


if __name__ == "__main__":
    main()
