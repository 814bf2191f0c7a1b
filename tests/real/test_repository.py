# SPDX-License-Identifier: BSD-2-Clause
"""An apt repository of packages: apt takes what its key signed, and nothing else."""

import gzip
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.repository import KEY, Keyring

pytestmark = pytest.mark.real


@pytest.fixture
def keyring(tmp_path: Path) -> Iterator[Keyring]:
    with Keyring(tmp_path / "gnupg") as made:
        yield made


class Apt:
    """A machine's apt, with one repository."""

    def __init__(self, at: Path, repository: Path) -> None:
        self.at = at
        for name in ("etc/keys", "lists/partial", "cache/archives/partial"):
            (at / name).mkdir(parents=True)
        (at / "status").touch()
        (at / "apt.conf").write_text(
            f'Dir::Etc "{at}/etc"; Dir::Etc::sourcelist "one.sources";\n'
            f'Dir::Etc::sourceparts "-"; Dir::State::lists "{at}/lists";\n'
            f'Dir::State::status "{at}/status"; Dir::Cache "{at}/cache";\n'
            'APT::Architecture "amd64"; APT::Sandbox::User "root";\n'
        )
        key = at / "etc" / "keys" / "moorage.asc"
        shutil.copy(repository / "moorage.asc", key)
        (at / "etc" / "one.sources").write_text(
            f"Types: deb\nURIs: file:{repository}\nSuites: bookworm\n"
            f"Components: main\nSigned-By: {key}\n"
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "APT_CONFIG": str(self.at / "apt.conf"), "LC_ALL": "C"}
        argv = ["apt-get", *words] if words[0] != "madison" else ["apt-cache", *words]
        return subprocess.run(
            argv, check=False, cwd=self.at, env=env, capture_output=True, text=True
        )

    def versions(self) -> list[str]:
        """Return which versions of ours it offers, the newest first."""
        update = self.run("update", "-o", "APT::Update::Error-Mode=any")
        if update.returncode:
            return []
        lines = self.run("madison", "moorage").stdout.splitlines()
        return [line.split("|")[1].strip() for line in lines]


def package(at: Path, version: str, words: str = "a test") -> Path:
    """Write a package, and return its file."""
    tree = at / f"tree-{version}-{words}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        f"Package: moorage\nVersion: {version}\nArchitecture: all\n"
        f"Maintainer: nobody <nobody@example.org>\nDescription: {words}\n"
    )
    made = at / f"moorage_{version}_all.deb"
    made.unlink(missing_ok=True)
    subprocess.run(["dpkg-deb", "-b", tree, made], check=True, capture_output=True)
    return made


def test_apt_has_each_version_that_was_added(tmp_path: Path, keyring: Keyring) -> None:
    repository = tmp_path / "repo"
    assert keyring.put(repository, package(tmp_path, "1.0")) == ""
    apt = Apt(tmp_path / "apt", repository)
    assert apt.versions() == ["1.0"]
    keyring.put(repository, package(tmp_path, "1.1"))
    assert apt.versions() == ["1.1", "1.0"]
    assert apt.run("download", "moorage=1.0").returncode == 0
    assert (apt.at / "moorage_1.0_all.deb").exists()


@pytest.mark.parametrize("name", ["InRelease", "main/binary-amd64/Packages"])
def test_apt_refuses_what_was_changed_afterwards(
    tmp_path: Path, keyring: Keyring, name: str
) -> None:
    repository = tmp_path / "repo"
    keyring.put(repository, package(tmp_path, "1.0"))
    lists = repository / "dists" / "bookworm"
    changed = (lists / name).read_bytes().replace(b"oorage", b"oorags")
    (lists / name).write_bytes(changed)
    packed = lists / f"{name}.gz"
    if packed.exists():
        packed.write_bytes(gzip.compress(changed))
    assert Apt(tmp_path / "apt", repository).versions() == []


def test_another_key_does_not_do(tmp_path: Path, keyring: Keyring) -> None:
    repository = tmp_path / "repo"
    keyring.put(repository, package(tmp_path, "1.0"))
    apt = Apt(tmp_path / "apt", repository)
    with Keyring(tmp_path / "other") as other:
        other.put(repository, package(tmp_path, "1.1"))
    assert apt.versions() == []


def test_what_cannot_be_added_leaves_it_as_it_was(
    tmp_path: Path, keyring: Keyring
) -> None:
    repository = tmp_path / "repo"
    keyring.put(repository, package(tmp_path, "1.0"))
    before = {one: one.read_bytes() for one in repository.rglob("*") if one.is_file()}
    other = package(tmp_path, "1.0", "another one")
    said = keyring.put(repository, other)
    assert "moorage_1.0_all.deb is there with another content" in said
    assert "no key is named: KEY=NAME" in keyring.put(repository, other, key="")
    nobody = "nobody@elsewhere.org"
    assert f"no secret key '{nobody}'" in keyring.put(repository, other, key=nobody)
    assert "there is no package" in keyring.put(repository, tmp_path / "gone.deb")
    after = {one: one.read_bytes() for one in repository.rglob("*") if one.is_file()}
    assert after == before
    assert KEY in keyring.listed()
