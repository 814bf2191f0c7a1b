# SPDX-License-Identifier: BSD-2-Clause
"""Where etcd is, as a word or as a file: what is off is refused in a sentence."""

import json
from pathlib import Path

import pytest

from moorage.errors import BadInput
from moorage.store import SqliteStore, etcd_of, store_at
from moorage.store.etcd import EtcdSettings, EtcdStore, read, settings_from, to_bytes


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("etcd://", "names no member"),
        ("etcd://10.0.0.1:2379/x", "the state would go to 10.0.0.1 in clear"),
        ("etcd://node1:2379/x", "the state would go to node1 in clear"),
        ("etcd://127.0.0.1.example:2379/x", "in clear"),
        ("etcd://127.0.0.1:99999/x", "is no address of a member"),
        ("etcd://me@127.0.0.1:1/x", "is not as https://HOST"),
        ("etcd://127.0.0.1:1/x/", "is not as /NAME"),
        ("etcd://127.0.0.1:1//x", "is not as /NAME"),
        ("nowhere.json", "and no file of settings: No such file"),
    ],
)
def test_a_word_that_is_off_is_refused(word: str, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        settings_from(word)
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x", "is no JSON"),
        ("\xff", "is no JSON"),
        ("{}", "endpoints"),
        ('{"endpoints": []}', "endpoints"),
        ('{"endpoints": ["https://h:1"]}', "needs 'ca'"),
        ('{"endpoints": ["https://h:1/v3"], "ca": "x"}', "is not as https://HOST"),
        ('{"endpoints": ["ftp://h:1"], "ca": "x"}', "is not as https://HOST"),
        ('{"endpoints": ["http://127.0.0.1:1"], "lease": 1}', "lease"),
        ('{"endpoints": ["http://127.0.0.1:1"], "lease": 61}', "lease"),
        ('{"endpoints": ["http://127.0.0.1:1"], "user": "root"}', "go together"),
        ('{"endpoints": ["http://127.0.0.1:1"], "certificate": "x"}', "who signs"),
        ('{"endpoints": ["http://127.0.0.1:1"], "pass": "x"}', "pass"),
        ('{"endpoints": ["http://127.0.0.1:1"], "prefix": ""}', "is not as /NAME"),
    ],
)
def test_a_file_that_is_off_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    file = tmp_path / "etcd.json"
    file.write_text(text, "latin-1")
    with pytest.raises(BadInput) as caught:
        settings_from(str(file))
    assert sentence in caught.value.message


def test_keys_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no key")
    for name in ("nowhere", "ca"):
        made = EtcdSettings(endpoints=("https://h:1",), ca=str(tmp_path / name))
        with pytest.raises(BadInput, match="cannot be used"):
            made.tls()


def test_the_store_is_where_the_masters_directory_says(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    assert etcd_of(path) is None
    assert isinstance(store_at(path), SqliteStore)
    given = settings_from("etcd://127.0.0.1:2379,[::1]:2380,localhost:1/a/b")
    assert given.prefix == "/a/b"
    assert given.endpoints[1] == "http://[::1]:2380"
    (tmp_path / "etcd.json").write_bytes(to_bytes(given))
    assert etcd_of(path) == given
    assert isinstance(store_at(path), EtcdStore)


@pytest.mark.parametrize("name", ["ca", "certificate", "key"])
def test_keys_are_named_by_absolute_paths(name: str) -> None:
    keys = {"ca": "/ca", "certificate": "/certificate", "key": "/key", name: "x.pem"}
    data = json.dumps({"endpoints": ["https://h:1"], **keys}).encode()
    with pytest.raises(BadInput, match=f"'{name}' is no absolute path: 'x.pem'"):
        read(data, "etcd.json")
