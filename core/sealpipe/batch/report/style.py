"""The style of a report's page: light and dark by the system, and for paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  --paper: #f4f2ed; --sheet: #fffefb; --ink: #1c2330; --quiet: #565f6d; --line: #ddd8cc;
  --accent: #0d5f5b; --tint: #cfe4e1; --warn: #8a3b12; --warn-tint: #fbeee4;
  color-scheme: light dark;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #12151b; --sheet: #1a1f27; --ink: #e9ebee; --quiet: #a7b0bc; --line: #2e3540;
    --accent: #7fd1c7; --tint: #1d4442; --warn: #f3b48a; --warn-tint: #33241b;
  }
}
* { box-sizing: border-box; }
body {
  max-width: 68rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 2.5rem);
  background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans",
    sans-serif;
}
h1 { margin: 0; font-size: 1.75rem; line-height: 1.25; }
h2 { margin: 0 0 1rem; font-size: 1.125rem; }
p { margin: 0; }
.kind { color: var(--accent); font-weight: 600; }
.quiet, footer, figcaption { color: var(--quiet); }
section {
  margin-top: 1.5rem; padding: 1.25rem clamp(1rem, 3vw, 1.5rem);
  border: 1px solid var(--line); border-radius: 0.75rem; background: var(--sheet);
}
dl {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr));
  gap: 0.75rem; margin: 0;
}
dl div {
  display: flex; flex-direction: column-reverse; padding-left: 0.75rem;
  border-left: 3px solid var(--line);
}
dl .done { border-color: var(--accent); }
dl .failed, dl .blocked { border-color: var(--warn); }
dt { color: var(--quiet); font-size: 0.875rem; }
dd {
  margin: 0; font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums;
  line-height: 1.25;
}
figure { margin: 0; }
svg { display: block; width: 100%; height: auto; }
svg text {
  fill: var(--quiet); font-size: 13px; font-family: inherit;
  font-variant-numeric: tabular-nums;
}
.grid { stroke: var(--line); }
.area { fill: var(--tint); stroke: none; }
.used { fill: none; stroke: var(--accent); stroke-width: 2.5; }
.delivered { fill: none; stroke: var(--quiet); stroke-width: 2; stroke-dasharray: 5 4; }
.mark {
  display: inline-block; width: 1.5rem; margin: 0 0.375rem 0.25rem 0;
  border-top: 3px solid var(--accent);
}
figcaption span { margin-right: 1.25rem; white-space: nowrap; }
.mark-delivered { border-top: 2px dashed var(--quiet); }
.scroll { overflow-x: auto; }
.scroll:focus-visible, summary:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px;
}
table { width: 100%; min-width: 40rem; border-collapse: collapse; font-size: 0.9375rem; }
th, td { padding: 0.5rem 0.75rem 0.5rem 0; text-align: left; vertical-align: top; }
thead th {
  overflow-wrap: normal; color: var(--quiet); font-weight: 600;
  border-bottom: 2px solid var(--line);
}
tbody th { font-weight: 600; min-width: 8rem; }
tbody + tbody { border-top: 1px solid var(--line); }
.more td { padding-top: 0; }
time { white-space: nowrap; font-variant-numeric: tabular-nums; }
.state {
  padding: 0.0625rem 0.5rem; border: 1px solid var(--line); border-radius: 1rem;
  white-space: nowrap;
}
.state.done { border-color: var(--accent); color: var(--accent); }
.state.failed, .state.blocked {
  border-color: var(--warn); background: var(--warn-tint); color: var(--warn);
}
.problem {
  padding: 0.5rem 0.75rem; border-left: 3px solid var(--warn);
  background: var(--warn-tint);
}
details { font-size: 0.875rem; }
summary { min-height: 1.5rem; color: var(--quiet); cursor: pointer; }
ol { margin: 0.25rem 0 0.5rem; padding-left: 1.5rem; }
footer { margin-top: 1.5rem; font-size: 0.875rem; }
@media screen and (max-width: 48rem) {
  svg text { font-size: 22px; }
  table { min-width: 0; }
  table, tbody, tr, tbody th, td { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tbody { padding: 0.75rem 0; }
  th, td { padding: 0.125rem 0; }
  td[data-label] { position: relative; padding-left: 7.5rem; }
  td[data-label]::before {
    content: attr(data-label); position: absolute; left: 0; color: var(--quiet);
  }
}
@media print {
  :root { --paper: #fff; --sheet: #fff; --tint: #e4f0ee; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  section { padding: 0; border: 0; border-radius: 0; }
  .scroll { overflow: visible; }
  table { min-width: 0; font-size: 9pt; }
  tbody, figure, dl div { break-inside: avoid; }
  h2 { break-after: avoid; }
  details:not([open]), .more:not(:has(p, [open])) { display: none; }
  .state, .problem, .mark, .area { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
"""Without markup, so that it can stand in a page as it is; the page's policy allows exactly this
text.
"""
