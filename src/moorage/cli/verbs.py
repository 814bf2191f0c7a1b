# SPDX-License-Identifier: BSD-2-Clause
"""The verbs that every resource has."""

from .declaration import Verb


def listing(module: str, word: str) -> tuple[Verb, Verb]:
    """Return ``list`` and ``list-fields`` of what a word in the singular means."""
    return (
        Verb("list", module, f"List {word}s: {_CHOICE}"),
        Verb("list-fields", module, f"List the fields that {_a(word)} has"),
    )


def tagging(word: str) -> tuple[Verb, Verb, Verb]:
    """Return the verbs on the tags of what a word in the singular means."""
    what = f"the {word}" if word == "cluster" else _a(word)
    return (
        Verb("list-tags", "tagging", f"Show the tags of {what}"),
        Verb("add-tags", "tagging", f"Give tags to {what}"),
        Verb("remove-tags", "tagging", f"Take tags from {what}"),
    )


def below(word: str, module: str, verbs: tuple[Verb, ...]) -> tuple[Verb, ...]:
    """Return verbs as commands of two words, which a module has."""
    return tuple(
        verb._replace(name=f"{word} {verb.name}", module=module) for verb in verbs
    )


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


_CHOICE = "those named, those that a filter fits, or all"
