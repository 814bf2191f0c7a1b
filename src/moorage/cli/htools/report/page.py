# SPDX-License-Identifier: BSD-2-Clause
"""The page around a picture: how it looks on a screen, in the dark, on paper.

The colours are those of Okabe and Ito, told apart by every kind of sight.
"""

from collections.abc import Container, Iterable
from typing import Final

from moorage.cli.htools.report.html import Markup, el, joined

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b222c; --soft: #566070;
  --line: #d3d8df; --free: #eff2f5; --edge: #b9c1cb; --own: #66717f; --stays: #a3afbd;
  --copy: #d0d7df; --goes: #e69f00; --on-goes: #241a00; --comes: #0072b2;
  --on-comes: #fff; --hatch: #39424e; --bad: #b03a00; --zebra: #f6f8fa; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #12161c;
  --ink: #e4e8ed; --soft: #9ba6b3; --line: #303844; --free: #1c232c; --edge: #465160;
  --own: #8a96a4; --stays: #556374; --copy: #3c4857; --goes: #e69f00;
  --on-goes: #241a00; --comes: #56b4e9; --on-comes: #06202f; --hatch: #b8c2cd;
  --bad: #ff9460; --zebra: #181e26; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px 24px 40px; max-width: 1088px; color: var(--ink);
  background: var(--paper); font: 13px/1.45 system-ui, "Segoe UI", "Helvetica Neue",
  Arial, sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 26px; line-height: 1.2; margin: 2px 0 6px; font-weight: 650; }
h2 { font-size: 16px; margin: 30px 0 8px; font-weight: 650; }
p { margin: 0 0 6px; max-width: 78em; }
.kicker, .small, small, caption, figcaption { color: var(--soft); font-size: 11.5px; }
.lead { font-size: 15px; }
code, .code { font: 11.5px/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas,
  monospace; overflow-wrap: anywhere; }
dl { display: flex; flex-wrap: wrap; gap: 0; margin: 16px 0 0;
  border-top: 2px solid var(--ink); border-bottom: 1px solid var(--line); }
dl div { flex: 1 1 auto; padding: 7px 18px 8px 0; }
dt { color: var(--soft); font-size: 11.5px; }
dd { margin: 0; font-size: 17px; white-space: nowrap; }
.sides { display: grid; grid-template-columns: minmax(0, 1.4fr) minmax(0, 1fr);
  gap: 0 36px; }
figure { margin: 0; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: 0 0 6px; }
th { text-align: left; font-weight: 600; }
thead th { color: var(--soft); font-size: 11.5px; border-bottom: 1px solid var(--ink);
  padding: 3px 10px 3px 0; vertical-align: bottom; }
td, tbody th { padding: 3px 10px 3px 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
td:last-child, th:last-child { padding-right: 0; }
.right, thead .right { text-align: right; }
.scroll { overflow-x: auto; }
.nodes { table-layout: fixed; min-width: 880px; }
.nodes th:first-child { width: 150px; overflow-wrap: anywhere; }
.nodes thead th:nth-child(2) { width: 70px; }
.nodes td, .nodes tbody th { padding-top: 6px; padding-bottom: 6px; }
.nodes small { display: block; font-size: 10.5px; font-weight: 400;
  line-height: 1.3; }
.nodes .name { display: block; line-height: 1.25; }
.nodes .note { color: var(--bad); }
.nodes svg + small { margin-top: 5px; }
.nodes .people span { display: block; font-size: 11.5px; line-height: 15px; }
.three .people span { font-size: 10.5px; line-height: 12px; }
.nodes .whole th, .nodes .whole td { border-bottom: 1px solid var(--ink); }
.none { color: var(--soft); font-size: 11.5px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font: 9px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; fill: var(--ink); }
svg .share { text-anchor: end; font-size: 10px; }
svg .short { fill: var(--bad); font-weight: 700; }
svg .faint { fill: var(--soft); }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
.free { fill: var(--free); stroke: var(--edge); stroke-width: .6; }
.own { fill: var(--own); }
.stays, .copy, .goes, .comes { stroke: var(--paper); stroke-width: .7; }
.stays { fill: var(--stays); } .copy { fill: var(--copy); }
.goes { fill: var(--goes); } .comes { fill: var(--comes); }
.kept { fill: url(#hatch); stroke: var(--hatch); stroke-width: .6; }
#hatch path { stroke: var(--hatch); stroke-width: .9; }
svg .on-goes, svg .on-comes { text-anchor: middle; font-weight: 600; }
svg .on-goes { fill: var(--on-goes); } svg .on-comes { fill: var(--on-comes); }
.axis { stroke: var(--edge); stroke-width: .8; fill: none; }
.line { stroke: var(--comes); stroke-width: 1.8; fill: none; }
.legend { display: flex; flex-wrap: wrap; gap: 3px 18px; margin: 0 0 8px; padding: 0;
  list-style: none; font-size: 11.5px; }
.legend svg { display: inline-block; width: 22px; height: 11px; margin-right: 6px;
  vertical-align: -1px; }
.steps td, .steps tbody th { padding-top: 2px; padding-bottom: 2px; }
.steps tbody td, .steps tbody th { border-bottom: 0; white-space: nowrap;
  vertical-align: baseline; }
.steps tbody { border-bottom: 1px solid var(--line); }
.steps td:last-child { white-space: normal; }
.numbers td { text-align: right; } .numbers .word { text-align: left; }
.stops { margin-top: 14px; }
details { margin-top: 26px; } summary { cursor: pointer; font-weight: 600; }
.hidden { position: absolute; width: 0; height: 0; }
footer { margin-top: 26px; border-top: 1px solid var(--line); padding-top: 8px; }
.four { display: grid; align-items: end; gap: 12px 24px;
  grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); }
.metrics td:last-child { width: 128px; } .metrics td, .metrics tbody th {
  padding-top: 2px; padding-bottom: 2px; vertical-align: middle; }
.metrics tbody th { font-weight: 400; }
@media screen and (max-width: 760px) { .sides { display: block; } }
@page { size: landscape; margin: 12mm; }
@media print {
  body { padding: 0; max-width: none; font-size: 11.5px; }
  .nodes { min-width: 0; }
  .nodes td, .nodes tbody th { padding-top: 3px; padding-bottom: 3px; }
  .nodes .people span { font-size: 10.5px; line-height: 13px; }
  .three .people span { line-height: 11px; }
  .steps td, .steps tbody th { padding-top: .5px; padding-bottom: .5px; }
  code, .code { font-size: 10px; }
  h2 { margin-top: 20px; }
  h2, .legend, caption, thead { break-after: avoid; }
  tr, figure, dl, .legend, .stops { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
  details:not([open]) { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

_NOTHING: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may fetch or run for this page."""

_HATCH: Final = el(
    "svg",
    el(
        "defs",
        el(
            "pattern",
            el("path", d="M0 0V5"),
            id="hatch",
            width=3.2,
            height=5,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    ),
    class_="hidden",
    aria_hidden="true",
)

_MEANINGS: Final = {
    "own": "system and other use",
    "stays": "instance that stays",
    "copy": "second copy of a disk",
    "goes": "leaves (number of the step)",
    "comes": "arrives (number of the step)",
    "kept": "memory kept for a failover",
    "free": "free",
}


def legend(**changed: str | None) -> Markup:
    """Return what the kinds of parts mean; None leaves one out."""
    meanings = _MEANINGS | changed
    items = (
        el(
            "li",
            el(
                "svg",
                el("rect", width=22, height=11, class_="free"),
                el("rect", width=22, height=11, class_=kind),
                viewBox="0 0 22 11",
                aria_hidden="true",
            ),
            meaning,
        )
        for kind, meaning in meanings.items()
        if meaning is not None
    )
    return el("ul", *items, class_="legend")


def page(title: str, *body: str | None) -> str:
    """Return a document."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", http_equiv="Content-Security-Policy", content=_NOTHING),
        el("title", title),
        el("style", Markup(_STYLE)),
    )
    main = el("body", _HATCH, *body)
    whole = el("html", "\n", head, "\n", main, "\n", lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def facts(pairs: dict[str, str]) -> Markup:
    """Return a line of names and values."""
    return el(
        "dl",
        *(el("div", el("dt", name), el("dd", value)) for name, value in pairs.items()),
    )


def section(title: str, *inside: str | None) -> Markup:
    """Return a part of a page under its heading."""
    return el("section", el("h2", title), "\n", joined(inside, "\n"), "\n")


def headings(heads: Iterable[str], right: Container[str] = ()) -> Markup:
    """Return the headings of a table; some stand to the right, over numbers."""
    cells = (
        el("th", head, class_="right" if head in right else None, scope="col")
        for head in heads
    )
    return el("thead", el("tr", *cells))


def scrolled(table: Markup, name: str) -> Markup:
    """Return a table that scrolls sideways on a narrow screen, and is named then."""
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label=name)
