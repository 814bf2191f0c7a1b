# SPDX-License-Identifier: BSD-2-Clause
"""Every command that the docs show does what they say; every link leads somewhere."""

import re
from pathlib import Path

import console
import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)#\s]*)(#[^)\s]*)?\)")
PAGES = console.pages()
ALL = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]


def is_real(page):
    return console.REAL in page.read_text()


def named(page):
    return f"{page.parent.name}/{page.stem}"


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if not is_real(p)], ids=named)
def test_a_page_tells_the_truth(page):
    console.check(page)


@pytest.mark.real
@pytest.mark.parametrize("page", [p for p in PAGES if is_real(p)], ids=named)
def test_a_page_tells_the_truth_on_real_guests(page):
    console.check(page, seconds=240.0)


KERNEL = (
    "-H kvm:kernel_path=$MOORAGE_GUEST/vmlinuz,initrd_path=$MOORAGE_GUEST/initrd.gz"
)


@pytest.mark.real
def test_the_provider_of_the_how_to_serves_real_guests(tmp_path):
    text = (ROOT / "docs" / "how-to" / "write-a-provider.md").read_text()
    page = tmp_path / "page.md"
    # A guest that is starting does not let go of a disk: give it time.
    for shown, real in (
        ("--hypervisor fake", "--hypervisor kvm"),
        ("$ gnt-instance add", f"$ gnt-instance add {KERNEL}"),
        ("$ gnt-disk detach", "$ sleep 10; gnt-disk detach"),
    ):
        assert shown in text
        text = text.replace(shown, real)
    page.write_text(text)
    console.check(page, seconds=240.0)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_page_ends_its_cluster(page):
    texts = [step.text for step in console.steps_of(page.read_text())]
    ups = [text for text in texts if text.startswith("moorage up")]
    assert ups
    assert all(console.SHOWN in text for text in ups)
    assert texts[-1].startswith(f"moorage down {console.SHOWN}")


def headings(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target, anchor in LINK.findall(page.read_text()):
        if ":" in target:
            continue
        there = (page.parent / target) if target else page
        assert there.exists(), f"{page.name} points to {target}"
        if anchor:
            assert anchor[1:] in headings(there), f"no heading {anchor} in {target}"


ONE = "0a1b2c3d-0000-4000-8000-000000000000"
OTHER = "ffffffff-1111-4111-8111-ffffffffffff"


# -- the tool itself ------------------------------------------------------------------


def test_what_a_page_says_to_do():
    page = """
```console
$ cat <<E
> word
> E
word
$ false   # refused
```
```sh file=a
x
```
"""
    first, second, third = console.steps_of(page)
    assert (first.text, first.shown) == ("cat <<E\nword\nE", ["word"])
    assert second.refused
    assert third.text.startswith("cat >a <<")


@pytest.mark.parametrize(
    ("shown", "printed", "true"),
    [
        ([], ["anything"], False),
        (["a  b"], ["a b"], True),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a"], ["a", "b"], False),
        (
            ["id 0a1b2c3d-0000-4000-8000-000000000000"],
            ["id " + "f" * 8 + "-1111-4111-8111-" + "f" * 12],
            True,
        ),
        (
            ["node3 gives no answer (Connection refused): it stays offline"],
            ["node3 gives no answer (node node3 (127.0.0.3:1811)): it stays offline"],
            False,
        ),
        (["web1 1.0G"], ["web1 9.0G"], False),
        (["(job 5 DISK_ADD(d1))"], ["(job 7 DISK_ADD(d1))"], True),
        (["it lacks 1 commit (gone)"], ["it lacks 2 commits (gone)"], False),
        (
            ["it lacks 1 commit (Connection refused)"],
            ["it lacks 2 commits (Connection reset by peer)"],
            True,
        ),
    ],
)
def test_what_a_page_may_leave_open(shown, printed, true):
    assert console.tells(shown, printed) is true


def test_a_command_that_fails_is_noticed(tmp_path):
    steps = console.steps_of("```console\n$ false\n$ echo never\n```")
    with pytest.raises(console.Wrong, match="'false' exited with 1"):
        console.run(steps, tmp_path, 10.0)


def test_a_command_that_ought_to_fail_is_noticed(tmp_path):
    steps = console.steps_of("```console\n$ true  # refused\n```")
    with pytest.raises(console.Wrong, match="exited with 0"):
        console.run(steps, tmp_path, 10.0)


def test_a_command_that_does_not_end_is_noticed(tmp_path):
    steps = console.steps_of("```console\n$ sleep 60\n```")
    with pytest.raises(console.Wrong, match="did not end"):
        console.run(steps, tmp_path, 0.2)


def test_the_index_of_decisions_has_all_of_them_and_says_which_are_missing():
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    numbers = {page.name[:4] for page in (ROOT / "docs" / "adr").glob("0*.md")}
    assert set(re.findall(r"^\| (\d{4}) \|", index, re.MULTILINE)) == numbers
    missing = set(re.findall(r"\bno (\d{4})", index))
    assert missing == {"0024", "0031"}
    assert not missing & numbers


FILE = re.compile(r"`((?:[a-z_]+/)+[\w.]+\.py)`")
PLACES = [
    ROOT,
    ROOT / "tests",
    ROOT / "src" / "moorage",
    ROOT / "cloud/src/moorage_cloud",
]


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page):
    named_files = FILE.findall(page.read_text())
    assert [
        one for one in named_files if not any((at / one).exists() for at in PLACES)
    ] == []


def test_a_decision_is_a_page():
    long = {
        page.name: words
        for page in (ROOT / "docs" / "adr").glob("0*.md")
        if (words := len(page.read_text().split())) > WORDS_OF_A_PAGE
    }
    assert long == {}


WORDS_OF_A_PAGE = 750
