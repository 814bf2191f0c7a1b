# SPDX-License-Identifier: BSD-2-Clause
"""Files of users: what a line means, and whom it lets in."""

import hashlib
import os
from base64 import b64encode
from pathlib import Path

import pytest

from moorage.api.rapi import passwords
from moorage.api.rapi.roles import Role
from moorage.api.rapi.users import Users
from moorage.daemons import rapi_keys
from moorage.errors import BadInput, Exists, Failed, NotFound


def basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


class Files:
    """A file of users and one of tokens, at some time."""

    def __init__(self, directory: Path) -> None:
        self.users = directory / "users"
        self.tokens = directory / "tokens"
        self.now = 0.0
        self.door = Users(self.users, self.tokens, clock=lambda: self.now)

    def say(self, text: str) -> None:
        self.users.write_text(text)
        self.users.chmod(0o600)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("anna secret", Role.KNOWN),
        ("anna secret read", Role.READ),
        ("anna secret  READ , write", Role.WRITE),
        ("anna\tsecret\toperate", Role.OPERATE),
        ("anna {cleartext}secret write", Role.WRITE),
        ("anna {CLEARTEXT}secret write", Role.WRITE),
        ("anna secret cheese", Role.KNOWN),
    ],
)
async def test_a_line_is_a_name_a_password_and_roles(files, line, role):
    files.say(f"# anna other write\n\n{line}\n")
    assert (await files.door.who(basic("anna", "secret"))).role is role
    assert await files.door.who(basic("anna", "other")) is None


async def test_ganetis_hash_is_of_the_name_too(files):
    files.say("Jack {ha1}" + _ha1("Jack", "abc") + " write\n")
    assert (await files.door.who(basic("Jack", "abc"))).role is Role.WRITE
    assert await files.door.who(basic("jack", "abc")) is None
    assert await files.door.who(basic("Jack", "abd")) is None


def _ha1(name: str, password: str) -> str:

    text = f"{name}:Ganeti Remote API:{password}"
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


async def test_a_hash_of_scrypt_fits_its_password_alone(files):
    kept = passwords.scrypt("secret")
    assert kept != passwords.scrypt("secret")
    assert "secret" not in kept
    files.say(f"anna {kept} read\n")
    for _ in range(2):
        assert (await files.door.who(basic("anna", "secret"))).name == "anna"
        assert await files.door.who(basic("anna", "Secret")) is None
    files.say(f"anna {passwords.scrypt('another')} read\n")
    assert await files.door.who(basic("anna", "secret")) is None


@pytest.mark.parametrize(
    "kept",
    [
        *("{rot13}secret", "{scrypt}", "{scrypt}1$a$b", "{scrypt}x$YQ==$YQ=="),
        *("{scrypt}99999999999$YQ==$YQ==", "{ha1}", "{SHA256}", "{}secret", "{"),
    ],
)
async def test_what_nobody_can_read_lets_nobody_in(files, kept):
    files.say(f"anna {kept} write\n")
    for password in ("secret", "", kept):
        found = await files.door.who(basic("anna", password))
        assert found is None or kept == password == "{"


@pytest.mark.parametrize(
    "header", ["", "Basic", "Basic !", "Basic YQ==", "Bearer", "Bearer ", "Digest a=b"]
)
async def test_other_headers_let_nobody_in(files, header):
    files.say("anna secret write\na  b\n")
    assert await files.door.who(header) is None


async def test_a_token_opens_by_itself_until_its_end(files):
    token = rapi_keys.add_token(files.tokens, "robot", Role.READ, 1, files.users)
    assert token not in files.tokens.read_text()
    assert files.tokens.stat().st_mode & 0o777 == 0o600
    for header in (f"Bearer {token}", basic("robot", token)):
        assert (await files.door.who(header)).role is Role.READ
    (user,) = rapi_keys.tokens(files.tokens)
    files.now = user.until
    assert await files.door.who(f"Bearer {token}") is None


async def test_a_token_is_revoked(files):
    token = rapi_keys.add_token(files.tokens, "robot", Role.READ, 1, files.users)
    other = rapi_keys.add_token(files.tokens, "other", Role.WRITE, 1, files.users)
    with pytest.raises(Exists, match="robot"):
        rapi_keys.add_token(files.tokens, "robot", Role.READ, 1, files.users)
    rapi_keys.remove_token(files.tokens, "robot")
    assert await files.door.who(f"Bearer {token}") is None
    assert (await files.door.who(f"Bearer {other}")).name == "other"
    with pytest.raises(NotFound, match="robot"):
        rapi_keys.remove_token(files.tokens, "robot")


@pytest.mark.parametrize(("name", "days"), [("", 1), ("a b", 1), ("#a", 1), ("a", 0)])
def test_a_token_has_a_name_and_lasts(files, name, days):
    with pytest.raises(BadInput):
        rapi_keys.add_token(files.tokens, name, Role.READ, days, files.users)
    assert not files.tokens.exists()


async def test_an_end_that_nobody_can_read_is_over(files):
    files.say("anna secret read,until=soon\n")
    assert await files.door.who(basic("anna", "secret")) is None


async def test_the_file_of_users_counts_before_that_of_tokens(files):
    token = rapi_keys.add_token(files.tokens, "anna", Role.WRITE, 1, files.users)
    files.say("anna secret read\n")
    assert (await files.door.who(basic("anna", "secret"))).role is Role.READ
    assert await files.door.who(basic("anna", token)) is None
    assert await files.door.who(f"Bearer {token}") is None
    rapi_keys.remove_token(files.tokens, "anna")
    with pytest.raises(Exists, match="who counts before a token"):
        rapi_keys.add_token(files.tokens, "anna", Role.WRITE, 1, files.users)


async def test_who_is_not_there_is_refused_as_slowly_as_who_is(files, monkeypatch):
    """The time of an answer tells nobody which names there are."""
    files.say(f"anna {passwords.scrypt('secret')} write\nbert secret read\n")
    compared = []
    slow = passwords._fits_scrypt

    def counted(kept, password):
        compared.append(password)
        return slow(kept, password)

    monkeypatch.setattr(passwords, "_fits_scrypt", counted)
    for name in ("anna", "bert", "nobody"):
        assert await files.door.who(basic(name, f"{name}'s guess")) is None
    assert compared == ["anna's guess", "bert's guess", "nobody's guess"]
    assert await files.door.who(basic("bert", "secret"))
    assert len(compared) == 3


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_root_reads_no_other_file_for_a_door_that_was_broken_into(tmp_path, kind):
    secret, tokens = tmp_path / "secret", tmp_path / "tokens"
    secret.write_text("root $6$hash 0 0\n")
    if kind == "link":
        tokens.symlink_to(secret)
    else:
        os.mkfifo(tokens)
    with pytest.raises(Failed):
        rapi_keys.add_token(tokens, "exporter", Role.READ, 1, tmp_path / "users")
    assert secret.read_text() == "root $6$hash 0 0\n"
