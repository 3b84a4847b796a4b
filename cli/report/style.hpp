// The style sheets of the reports: system fonts, one column of cards, light and dark by the reader's setting; and what
// of them a picture needs that stands by itself.
#pragma once

namespace vicinal::cli::report {

inline constexpr char kColors[] = R"css(
:root { color-scheme: light dark; --paper: #faf9f6; --card: #ffffff; --ink: #1b1d22; --muted: #666a73; --line: #e5e2db;
  --good: #1f6f8b; --bad: #c8553d; --track: #ecebe6; --on: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --paper: #14161a; --card: #1b1e24; --ink: #e9e7e2; --muted: #9a9ea8;
  --line: #2c3038; --good: #5fb3cf; --bad: #f0876a; --track: #2a2e36; --on: #10141a; } }
)css";

/// What is drawn.
inline constexpr char kDrawn[] =
    R"css(svg text { font-size: 12px; fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .soft { fill: var(--muted); }
svg .on { fill: var(--on); }
svg .strong { font-weight: 600; }
svg .good, .key .good { fill: var(--good); background: var(--good); }
svg .bad, .key .bad { fill: var(--bad); background: var(--bad); }
svg .track { fill: var(--track); }
svg .line { fill: var(--line); }
svg .curve { fill: none; stroke: var(--good); stroke-width: 2; stroke-linejoin: round; }
svg .dots { fill: none; stroke-linecap: round; stroke-opacity: .75; }
svg .centre { fill: var(--card); stroke-width: 3; }
svg .ring { fill: none; stroke: var(--bad); stroke-width: 1.5; }
svg .mean { fill: none; stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 4 4; }
)css";

/// The page around it.
inline constexpr char kStyle[] = R"css(* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif; -webkit-text-size-adjust: 100%; overflow-wrap: anywhere; }
main { max-width: 1080px; margin: 0 auto; padding: 56px 28px 72px; }
header p { margin: 0; color: var(--muted); }
.over { font-size: 13px; letter-spacing: .08em; text-transform: uppercase; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 6px 0 4px; }
h2 { font-size: 18px; font-weight: 650; letter-spacing: -.005em; margin: 0 0 2px; }
.note { color: var(--muted); font-size: 14px; margin: 0 0 18px; max-width: 68ch; }
.hero { display: grid; grid-auto-flow: column; grid-auto-columns: auto; justify-content: start; align-items: baseline;
  gap: 20px clamp(18px, 3.4vw, 44px); margin: 36px 0 32px; }
.big { font-size: 84px; line-height: .9; font-weight: 700; letter-spacing: -.045em;
  font-variant-numeric: tabular-nums; }
.hero:has(> :nth-child(6)) { column-gap: 18px; } .hero:has(> :nth-child(6)) .big { font-size: 52px; }
.big small { font-size: .45em; font-weight: 600; letter-spacing: 0; color: var(--muted); margin-left: .12em; }
.figure span { display: block; color: var(--muted); font-size: 14px; }
.figure + .figure span { overflow-wrap: break-word; } .big, .figure b { white-space: nowrap; }
.figure b { font-size: 24px; font-weight: 600; letter-spacing: -.01em; font-variant-numeric: tabular-nums; }
.figure .big + span { margin-top: 12px; }
section, .facts { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 26px 28px;
  margin: 20px 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 16px 28px; margin: 0; }
.facts div { min-width: 0; }
.facts dt { color: var(--muted); font-size: 13px; }
.facts dd { margin: 0; font-size: 15px; }
.facts .wide { grid-column: 1 / -1; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 20px; margin: 20px 0; }
.pair section { margin: 0; min-width: 0; }
svg { display: block; width: 100%; height: auto; margin: 0 auto; }
svg.strip { height: 28px; border-radius: 8px; overflow: hidden; margin: 4px 0 18px; }
.key { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--muted); font-size: 13px; margin: 14px 0 0; }
.key i, .view svg, td .swatch, .track, .good, .bad { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 7px; }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--good); }
table { width: 100%; border-collapse: collapse; table-layout: fixed; font-variant-numeric: tabular-nums;
  font-size: 14px; }
th { font-weight: 500; color: var(--muted); font-size: 13px; text-align: left; padding: 0 10px 8px 0; }
td { padding: 8px 10px 8px 0; border-top: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
td.name { font-weight: 600; }
td .swatch { display: inline-block; width: 11px; height: 11px; margin: 0 9px 0 0; vertical-align: -1px;
  border-radius: 3px; }
td .shares { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 6px 18px; font-size: 13px; }
td .shares p { display: flex; justify-content: space-between; gap: 8px; margin: 0; }
td .shares p span { min-width: 0; }
td .shares p span + span { color: var(--muted); flex: none; }
td svg { height: 4px; margin-top: 4px; border-radius: 2px; overflow: hidden; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 240px), 1fr)); gap: 14px 20px; }
figure { margin: 0; min-width: 0; } figcaption { color: var(--muted); font-size: 13px; text-align: center;
  margin-top: 4px; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); grid-auto-rows: 1fr;
  gap: 14px; }
.card { border: 1px solid var(--line); border-radius: 12px; padding: 14px; min-width: 0; }
.what { display: flex; gap: 14px; align-items: center; }
.what p { margin: 0; font-size: 13px; color: var(--muted); line-height: 1.45; min-width: 0; }
.what strong { display: block; font-size: 15px; color: var(--ink); font-weight: 600; }
.truth { color: var(--good); } .said { color: var(--bad); }
img { display: block; image-rendering: pixelated; border-radius: 6px; background: #000; }
.what img { width: 84px; height: 84px; object-fit: contain; flex: none; }
.near { display: flex; flex-wrap: wrap; gap: 8px 5px; margin: 12px 0 0; padding: 0; list-style: none;
  font-size: 12px; color: var(--muted); }
.near li { text-align: center; min-width: 0; width: 52px; line-height: 1.25; font-size: 10px; }
.near img { width: 44px; height: 44px; object-fit: contain; margin: 0 auto 3px; }
.near.words li { width: auto; max-width: 100%; font-size: 12px; border: 1px solid var(--line); border-radius: 8px;
  padding: 3px 9px; text-align: left; }
.near b { font-weight: 600; }
.c-unchanged { --c: #9db8ad; } .c-modified { --c: #5b8fb0; } .c-split { --c: #d9a441; } .c-merged { --c: #8d6bb0; }
.c-created { --c: #4f9e5a; } .c-removed { --c: #c8553d; } .c-complex { --c: #b85c8a; }
.key i[class^="c-"] { background: var(--c); } .atlas .key { margin: 0 0 14px; }
.atlas g, .atlas path { fill: var(--c); stroke: var(--card); stroke-width: .4; vector-effect: non-scaling-stroke; }
.atlas g path { vector-effect: non-scaling-stroke; } .atlas g path:hover { fill-opacity: .6; }
.atlas path.old, .pairing .first { fill: none; stroke: var(--ink); stroke-width: .8; stroke-dasharray: 3 2;
  vector-effect: non-scaling-stroke; pointer-events: none; }
.atlas > input { position: absolute; opacity: 0; } .atlas > label { display: inline-block;
  border: 1px solid var(--line); border-radius: 8px;
  padding: 2px 12px; margin: 0 6px 12px 0; font-size: 13px; cursor: pointer; }
  .atlas > input:checked + label { background: var(--track); font-weight: 600; }
.atlas > input:focus-visible + label { outline: 2px solid var(--good); }
.view { position: relative; overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: 10px; }
.view svg { margin: 0; max-height: 78vh; } .view:focus-visible { outline: 2px solid var(--good); }
.tools, .search { display: none; align-items: center; flex-wrap: wrap; gap: 6px; margin: 0 0 12px; color: var(--muted);
  font-size: 13px; }
.live .tools, .live .search { display: flex; } .live .atlas > input, .live .atlas > label { display: none; }
.live .view { overflow: hidden; } .live .view svg { cursor: grab; user-select: none; }
.tools button { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 2px 12px; cursor: pointer; }
.tip { position: absolute; max-width: 260px; pointer-events: none; background: var(--ink); color: var(--paper);
  border-radius: 6px; padding: 2px 8px; font-size: 13px; } .tip[hidden] { display: none; }
.atlas .inset { fill: none; stroke: var(--line); vector-effect: non-scaling-stroke; }
.atlas .mark { fill: none; stroke: none; pointer-events: none; vector-effect: non-scaling-stroke; }
.atlas .marked { stroke: var(--ink); stroke-width: 2; }
.search input { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line);
  border-radius: 8px; padding: 3px 10px; margin-left: 6px; width: 220px; max-width: 100%; }
.changes ol { list-style: none; margin: 0; padding: 0; max-height: 380px; overflow: auto; border: 1px solid var(--line);
  border-radius: 10px; font-size: 14px; } .cards + .changes { margin-top: 18px; }
.changes li { padding: 5px 12px; border-bottom: 1px solid var(--line); } .changes li[hidden] { display: none; }
.changes li i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 9px;
  background: var(--c); print-color-adjust: exact; }
.changes button { all: unset; display: block; cursor: pointer; } .changes button:hover { text-decoration: underline; }
.changes button:focus-visible { outline: 2px solid var(--good); }
#z2:checked ~ .view svg, #z4:checked ~ .view svg, #z8:checked ~ .view svg { max-height: none; }
#z2:checked ~ .view svg { width: 200%; } #z4:checked ~ .view svg { width: 400%; } #z8:checked ~ .view svg {
  width: 800%; }
.pairing svg { max-height: 220px; } .pairing .second { fill: var(--good); fill-opacity: .35; stroke: var(--good);
  vector-effect: non-scaling-stroke; }
.pairing .first { fill: var(--bad); fill-opacity: .18; } .pairing p { font-size: 13px; color: var(--muted);
  margin: 10px 0 0; } .pairing strong { display: block; color: var(--ink); }
footer { color: var(--muted); font-size: 13px; margin-top: 28px; }
@media (max-width: 860px) { .hero { grid-auto-flow: row; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); }
  .figure { min-width: 0; }
  .hero .figure:first-child { grid-column: 1 / -1; } .pair { grid-template-columns: minmax(0, 1fr); }
  td .shares { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 560px) { main { padding: 28px 14px 44px; } section, .facts { padding: 18px 16px; } .big {
  font-size: 64px; }
  .scroll table { table-layout: auto; } td:not(.name), th { white-space: nowrap; overflow-wrap: normal; }
  td:not(.name) svg { min-width: 44px; }
  td.name, td.words { min-width: 72px; white-space: normal; overflow-wrap: anywhere; }
  td .shares { min-width: 150px;
  white-space: normal; }
  .cards { grid-auto-rows: auto; } h1 { font-size: 24px; } .hero { gap: 18px 24px; margin: 26px 0 24px; }
  td, th { padding-right: 8px; } }
@media print { :root { color-scheme: light; --paper: #ffffff; } main { max-width: none; padding: 0; }
  section, .card { break-inside: avoid; }
  .atlas > input, .atlas > label, .live .tools, .live .search { display: none; } .changes ol { max-height: none; } }
)css";

}  // namespace vicinal::cli::report
