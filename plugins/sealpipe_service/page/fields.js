// Shows fields by their type. Values may be hostile, so they only ever become text.

import { announce, count, hasUnseen, make, revealButton, shownType, visible } from "./base.js";
import { qrPicture } from "./qr_picture.js";

const MASK = "••••••••••••";

// How a type is shown; what is not in the table is text. `code`: its own typeface; `lines`: not wrapped; `wide`: the
// buttons stand below, and a file name is offered; `masked`: whether this value is hidden until it is asked for.
const KINDS = new Map([
  ["text", { name: "Text" }],
  ["password", { name: "Password", code: true, masked: () => true }],
  ["date", { name: "Date", aside: readDate }],
  ["multiline", { name: "Several lines", code: true, masked: isPrivateKey }],
  ["markdown", { name: "Markdown", code: true, wide: true }],
  ["source_code", { name: "Source code", code: true, lines: true, wide: true }],
  ["url", { name: "Address", link: true }],
  ["qr", { name: "QR code", code: true, above: qrPicture }],
]);

// How a private key begins: PEM and OpenSSH, PGP, PuTTY, age.
function isPrivateKey(value) {
  return /^\s*(-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1)/m.test(value);
}

// More than that at once keeps a browser busy for long; a sender may send a hundred times as many.
const PART = 5000;

/**
 * A list of fields, `{key, value, type, ...}` each, as one element; `heading` is what their labels are.
 * Those beyond the `first` come when they are asked for.
 */
export function fieldList(fields, heading = "h2", first = PART) {
  const items = (from, to) => fields.slice(from, to).map((field, at) => fieldItem(field, from + at, heading));
  const list = make("ul", { class: "fields", role: "list" }, items(0, first));
  if (fields.length <= first) return list;
  let shown = first;
  const word = () => `Show ${count(Math.min(PART, fields.length - shown), "more field")}`;
  const more = make("button", { type: "button" }, word());
  const actions = make("div", { class: "actions" }, more);
  more.addEventListener("click", () => {
    const next = items(shown, shown + PART);
    for (const item of next) list.append(item);
    shown += next.length;
    announce(`${count(next.length, "more field")} shown`);
    more.textContent = word();
    if (shown < fields.length) return;
    // The button goes: who works without a pointer goes on at what it has brought.
    actions.remove();
    const begin = next[0].querySelector(".label, .value");
    if (begin.tabIndex < 0) begin.tabIndex = -1;
    begin.focus();
  });
  return make("div", {}, list, actions);
}

function fieldItem(field, at, heading) {
  const kind = KINDS.get(shownType(field.type));
  const value = asText(field.value);
  const key = visible(asText(field.key)).trim();
  const label = key || `Field ${at + 1}`; // for a screen reader: no label is shown where there is none
  const masked = kind.masked?.(value);
  const shown = masked ? maskedValue(label, kind) : plainValue(label, kind, value);
  const actions = [
    masked ? revealButton(label, (shows) => reveal(shows, shown, value, label)) : null,
    copyButton(value, label),
    kind.wide && typeof field.filename === "string" && field.filename !== "" ? download(value, field.filename, label) : null,
  ];
  return make(
    "li",
    { class: "field", "data-type": asText(field.type) },
    make(
      "div",
      { class: "head" },
      key ? make(heading, { class: "label", dir: "auto" }, key) : make("span"),
      make("span", { class: "kind" }, kindName(kind, field)),
    ),
    kind.above ? kind.above(value, label) : null,
    make("div", { class: kind.wide || value.includes("\n") ? "" : "row" }, shown, make("div", { class: "actions" }, actions)),
    kind.aside ? kind.aside(value) : null,
    kind.link ? whereTo(value) : null,
    hasUnseen(value) ? make("p", { class: "hint" }, "Contains invisible characters or ones that change the text direction.") : null,
  );
}

function asText(value) {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

function kindName(kind, { selectedProgrammingLanguage: language }) {
  const named = kind.lines && typeof language === "string" ? visible(language).slice(0, 60) : "";
  return named ? `${kind.name}: ${named}` : kind.name;
}

function valueClass(kind) {
  return ["value", kind.code ? "code" : "", kind.lines ? "lines" : ""].filter(Boolean).join(" ");
}

// A box that may scroll can be reached with the keyboard, and says what it is.
function plainValue(label, kind, value) {
  const address = kind.link ? absolute(value) : null;
  const inside = address ? make("a", { href: address.href, target: "_blank", rel: "noopener noreferrer" }, value) : value;
  const box = { class: valueClass(kind), dir: "auto", tabindex: 0, role: "group", "aria-label": label };
  return make("pre", address ? { class: valueClass(kind), dir: "auto" } : box, inside === "" ? null : inside);
}

function maskedValue(label, kind) {
  const box = { class: `${valueClass(kind)} masked`, tabindex: 0, role: "group", "aria-label": label };
  return make("pre", box, ...maskNodes());
}

function maskNodes() {
  return [make("span", { "aria-hidden": "true" }, MASK), make("span", { class: "sr-only" }, "hidden")];
}

function reveal(shows, box, value, label) {
  box.classList.toggle("masked", !shows);
  box.replaceChildren(...(shows ? (value === "" ? [] : [value]) : maskNodes()));
  announce(shows ? `${label} is shown` : `${label} is hidden`);
}

function copyButton(value, label) {
  const word = make("span", {}, "Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value);
      word.textContent = "Copied";
      announce(`${label} is copied`);
    } catch {
      word.textContent = "Not copied";
      announce(`${label} could not be copied: select it and copy it by hand`);
    }
    setTimeout(() => (word.textContent = "Copy"), 2500);
  };
  return make("button", { type: "button", class: "copy", on: { click: copy } }, word, make("span", { class: "sr-only" }, ` ${label}`));
}

function download(value, filename, label) {
  const name = safeFilename(filename);
  const save = () => {
    // Plain bytes: no browser shows them as a page. The address lives as long as the click needs it.
    const address = URL.createObjectURL(new Blob([value], { type: "application/octet-stream" }));
    const link = make("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    announce(`${label} is saved as ${name}`);
  };
  return make(
    "button",
    { type: "button", class: "download", "data-filename": name, on: { click: save } },
    make("span", {}, "Download ", make("bdi", { class: "name" }, name)),
  );
}

const RESERVED = /^(con|prn|aux|nul|(com|lpt)[\d¹²³])\s*(\.|$)/i;

/** A name that names a file and no place: its last part, without what a system or an eye would misread. */
export function safeFilename(name) {
  const last = name.split(/[/\\]/).at(-1);
  const plain = Array.from(last.replace(/[\p{C}\p{Zl}\p{Zp}<>:"|?*%]/gu, "").replace(/^[.\s~-]+|[.\s]+$/g, ""));
  const dot = plain.lastIndexOf(".");
  const ending = dot > 0 && plain.length - dot <= 12 ? plain.slice(dot) : [];
  const short = plain.length > 100 ? [...plain.slice(0, 100 - ending.length), ...ending] : plain;
  const safe = short.join("");
  if (safe === "") return "shared.txt";
  return RESERVED.test(safe) ? `_${safe}` : safe;
}

/** The address of a value that is one: absolute, http or https, nothing hidden in it; else null. */
export function absolute(value) {
  if (!/^https?:\/\/[^/\s]/i.test(value) || /[\s\p{C}\\]/u.test(value) || !URL.canParse(value)) return null;
  const address = new URL(value);
  return ["http:", "https:"].includes(address.protocol) ? address : null;
}

function whereTo(value) {
  if (value === "") return null;
  const address = absolute(value);
  if (!address) return make("p", { class: "hint" }, "Not a web address that can be opened from here.");
  return make("p", { class: "hint" }, "Opens ", make("bdi", {}, address.host), " in a new tab.");
}

const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeZone: "UTC" });

function readDate(value) {
  const date = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00Z`) : null;
  // 30 February is no date, however willingly a Date counts on.
  const real = date && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value);
  return real ? make("p", { class: "hint" }, make("time", { datetime: value }, DATE.format(date))) : null;
}

/** What a heading or a screen reader says of a list. */
export function howMany(fields) {
  return count(fields.length, "field");
}
