# SPDX-License-Identifier: BSD-2-Clause
"""How commands behave: what they say, what they suggest, and in which order."""

import pytest

from moorage.cli.terminal import visible
from moorage.errors import NotFound


def test_nothing_that_destroys_is_suggested(typed) -> None:
    for line in (
        "gnt-instance removed x",
        "gnt-group removed x",
        "gnt-disk removed x",
    ):
        screen = typed(line)
        assert screen.status == 1
        assert "remove?" not in screen.err
    assert "did you mean modify?" in typed("gnt-instance modfy").err


def test_nothing_is_suggested_for_what_destroys(master, typed) -> None:
    error = NotFound("instance 'web2' is not known", hint="did you mean web3 or web1?")
    master.result = error
    assert "web3" not in typed("gnt-instance remove -f web2").err
    assert "web3" not in typed("gnt-instance shutdown web2").err
    assert "did you mean web3" in typed("gnt-instance startup web2").err
    master.result = NotFound("instance 'web2' is not known", hint="gnt-instance list")
    assert "hint: gnt-instance list" in typed("gnt-instance shutdown web2").err


def test_help_of_a_command(typed) -> None:
    shown = typed("gnt-instance help add")
    assert shown.out == typed("gnt-instance add --help").out
    assert shown.status == 0
    assert typed("gnt-instance help").out == typed("gnt-instance --help").out
    assert "no command 'nosuch'" in typed("gnt-instance help nosuch").err


def test_a_question_says_what_it_is_about(master, typed) -> None:
    rows = [[[0, f"web{number}"]] for number in range(7)]
    name = {"name": "name", "title": "Name", "kind": "text", "doc": ""}
    master.answers["Query"] = {"fields": [name], "data": rows}
    screen = typed("gnt-instance shutdown --all", answer="n\n")
    assert "Shut down every instance of the cluster (7: web0, web1" in screen.err
    assert "Reboot every" in typed("gnt-instance reboot --all", answer="n\n").err
    assert master.ops == []


def test_times_are_no_less_than_nothing(master, typed) -> None:
    for line in (
        "gnt-instance shutdown --timeout -1 web1",
        "gnt-instance shutdown --timeout x web1",
        "gnt-instance failover -f --shutdown-timeout -5 web1",
        f"gnt-instance remove -f --shutdown-timeout {10**30} web1",
    ):
        screen = typed(line)
        assert screen.status == 1
        assert "is not a number of seconds" in screen.err
    assert master.calls == []


def test_an_instance_that_was_made_is_told(master, typed) -> None:
    master.result = ["node1"]
    screen = typed("gnt-instance add -t diskless -n node1 web1")
    assert screen.out == "Added instance web1\n"


def test_only_what_waits_for_a_start_is_said_to(master, typed) -> None:
    master.result = [["disk/1", "detach"]]
    assert "(re)start" not in typed("gnt-instance modify --disk 1:detach web1").out
    master.result = [["be/vcpus", 2]]
    assert "(re)start" in typed("gnt-instance modify -B vcpus=2 web1").out


def test_grammar(typed) -> None:
    assert "an instance has" in typed("gnt-instance list-fields --help").out
    assert "a node has" in typed("gnt-node list-fields --help").out


def test_control_characters_reach_no_terminal(master, typed) -> None:
    master.result = NotFound("a\x1b]52;c;x\x07b \x9b2J \u202e")
    screen = typed("gnt-disk detach data1")
    assert r"a\x1b]52;c;x\x07b \x9b2J \u202e" in screen.err
    assert visible("ä\t\n🚢") == "ä\t\n🚢"


def test_what_is_no_text_is_refused(master, typed) -> None:
    screen = typed("gnt-disk detach '\udcff'")
    assert "is not text in UTF-8" in screen.err
    assert master.calls == []


@pytest.mark.parametrize(
    ("line", "sentence", "hint"),
    [
        ("gnt-cluster modify -H kvm", "-H kvm names no parameter", "kvm:KEY=VALUE"),
        ("gnt-cluster modify -D ext:", "-D ext names no parameter", "ext:KEY=VALUE"),
        ("gnt-os modify -H kvm tiny", "-H kvm names no parameter", "kvm:KEY=VALUE"),
        ("gnt-group modify -D ext g1", "-D ext names no parameter", "ext:KEY=VALUE"),
        (
            "gnt-node modify -C maybe node2",
            "--master-candidate is one of yes, no, not 'maybe'",
            "",
        ),
        ("gnt-disk clone a1 a2", "what is 'a2'?", "gnt-disk clone DISK --name NAME"),
        ("gnt-disk move a1 slow", "what is 'slow'?", "gnt-disk move --pool POOL DISK"),
        ("gnt-backup import --disk-only X Y", "what is 'Y'?", "--src-dir EXPORT"),
    ],
)
def test_a_word_in_the_wrong_place_is_explained(
    master, typed, line: str, sentence: str, hint: str
) -> None:
    screen = typed(line)
    assert (screen.status, master.ops) == (1, [])
    assert sentence in screen.err
    assert hint in screen.err


def test_a_claim_without_a_word_is_a_yes(master, typed) -> None:
    for line in ("-C node2", "node2 -C", "-C yes node2", "node2 --master-candidate"):
        assert typed(f"gnt-node modify {line}").status == 0
    assert all(op["master_candidate"] is True for op in master.ops)


@pytest.mark.parametrize("line", ["gnt-network remove net1", "gnt-node power on node2"])
def test_what_ganeti_does_without_a_question_needs_no_answer(
    master, typed, line: str
) -> None:
    master.result = []
    screen = typed(line)
    assert (screen.status, len(master.ops)) == (0, 1), screen.err


@pytest.mark.parametrize("word", ["off", "cycle"])
def test_nobody_is_cut_off_unasked(master, typed, word: str) -> None:
    screen = typed(f"gnt-node power {word} node2")
    assert (screen.status, master.ops) == (1, [])
    assert "nobody is here to be asked" in screen.err
