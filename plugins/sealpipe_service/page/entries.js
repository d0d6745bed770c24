// The form: one entry per prompt, by its type. Spell check and completion are off: with them, browsers may store what
// is typed or send it elsewhere.

import { announce, make, revealButton, shownType, visible } from "./base.js";
import { QR_LIMIT } from "./qr_picture.js";

const QUIET = { autocomplete: "off", autocapitalize: "off", autocorrect: "off", spellcheck: "false" };

// `input`: an input of that type, else an area of `rows`. What is not in the table is text.
const KINDS = new Map([
  ["text", { input: "text", grows: true }],
  ["password", { input: "password", code: true, grows: true }],
  ["date", { input: "date" }],
  ["multiline", { rows: 5, code: true }],
  ["markdown", { rows: 6, hint: "Markdown, shown as plain text." }],
  ["source_code", { rows: 6, code: true }],
  ["url", { input: "url", hint: "A web address, such as https://example.com/" }],
  ["qr", { rows: 3, limit: QR_LIMIT, hint: `Text of up to ${QR_LIMIT.toLocaleString("en-GB")} characters, for a QR code.` }],
]);

let numbered = 0;

/**
 * `{node, field(), empty(), problem(), mark(text), focus()}` for a prompt `{item, type}`; `mark("")` takes the text away.
 * `required`: whether nothing can be sent without it.
 */
export function entry({ item, type }, required, changed) {
  const kind = KINDS.get(shownType(type));
  const id = `entry-${(numbered += 1)}`;
  const label = visible(item);
  const hints = [required ? "Required." : null, kind.hint].filter(Boolean);
  const hint = make("p", { class: "hint", id: `${id}-hint` }, hints.join(" "));
  hint.hidden = !hints.length;
  const error = make("p", { class: "error", id: `${id}-error`, role: "alert" });
  const place = {
    control: kind.input
      ? make("input", { id, type: kind.input, class: kind.code ? "code" : null, ...describing(id, required), ...QUIET })
      : area(id, required, kind),
  };
  const row = make("div", { class: "with-button" }, place.control);
  if (kind.input === "password") row.append(revealButton(label, (shows) => reveal(shows, place)));
  row.addEventListener("input", changed);
  for (const way of kind.grows ? ["paste", "drop"] : []) {
    place.control.addEventListener(way, (event) => grow(event, place, hint, required, changed));
  }
  return {
    node: make("div", { class: "entry", "data-type": type }, make("label", { for: id, dir: "auto" }, label), hint, row, error),
    field: () => ({ key: item, value: place.control.value, type }),
    empty: () => place.control.value === "" && !place.control.validity.badInput,
    problem: () => problem(kind, place.control),
    mark: (text) => {
      error.textContent = text;
      place.control.setAttribute("aria-invalid", String(text !== ""));
    },
    focus: () => place.control.focus(),
  };
}

function describing(id, required) {
  return { "aria-describedby": `${id}-hint ${id}-error`, "aria-required": required ? "true" : null };
}

function area(id, required, { rows = 4, code = false }) {
  return make("textarea", { id, rows, class: code ? "code" : null, ...describing(id, required), ...QUIET });
}

function problem({ limit = Infinity }, control) {
  if (control.validity.badInput) return "This date is incomplete.";
  if (Array.from(control.value).length > limit) return `This is more than ${limit.toLocaleString("en-GB")} characters.`;
  // Half of a pair has no place in UTF-8: another program could not read it.
  if (/\p{Surrogate}/u.test(control.value)) return "This is not valid text.";
  return null;
}

function reveal(shows, place) {
  if (place.control.tagName === "TEXTAREA") place.control.classList.toggle("hides", !shows);
  else place.control.type = shows ? "text" : "password";
}

// A key of several lines, pasted or dropped where one was expected, would silently become one line that no program reads.
function grow(event, place, hint, required, changed) {
  const text = ((event.clipboardData ?? event.dataTransfer)?.getData("text/plain") ?? "").replaceAll("\r\n", "\n");
  const small = place.control;
  if (!text.replace(/\n+$/, "").includes("\n")) return;
  event.preventDefault();
  const large = area(small.id, required, { rows: 6, code: true });
  large.value = small.value.slice(0, small.selectionStart) + text + small.value.slice(small.selectionEnd);
  large.classList.toggle("hides", small.type === "password");
  small.replaceWith(large);
  place.control = large;
  hint.textContent = "You pasted several lines: line breaks are kept.";
  hint.hidden = false;
  announce(hint.textContent);
  large.focus();
  changed();
}
