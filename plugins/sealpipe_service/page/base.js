// What every page does: builds the document from text (never from markup), asks the service, tells a person.

/** An element. Attributes are plain; `on` holds listeners; children are nodes or text, null left out. */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a drawing (SVG), as `make` makes one of text. */
export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  // One by one: a call takes no hundred thousand arguments, and a sender may send so many fields.
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** The fragment (without `#`), which is gone from the address bar and the history entry once this returns. */
export function takeFragment() {
  const fragment = location.hash.replace(/^#/, "");
  if (location.href.includes("#")) history.replaceState(null, "", location.pathname + location.search);
  return fragment;
}

/** Whether the link has an encoded `#` and no other: what stands behind it is the key, and leaves the address bar. */
export function takeEncodedHash(fragment) {
  const [before, ...behind] = location.pathname.split(/%(?:25)*23/);
  if (fragment || !behind.length) return false;
  history.replaceState(null, "", before);
  return true;
}

/** What was shown is not kept for who comes back, nor beside another link that is pasted over this one. */
export function keepNothing() {
  addEventListener("hashchange", () => location.hash && location.reload());
  // A page that a browser keeps, to bring it back as it was, goes there empty.
  addEventListener("pagehide", (event) => event.persisted && document.getElementById("stage").replaceChildren());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

/** The page's last path segment as it stands there: still encoded, to be one segment of a route, too. */
export function codeSegment() {
  return location.pathname.split("/").at(-1);
}

/** The service's tag, which the service has written into the page. */
export function serviceTag() {
  return document.documentElement.dataset.serviceTag;
}

/** Whether people say themselves who they are, as in a rehearsal. */
export function statesIdentity() {
  return document.documentElement.dataset.people === "stated";
}

/** The type as which this service shows a field: one that it does not know is text. */
export function shownType(type) {
  return document.documentElement.dataset.fieldTypes.split(" ").includes(type) ? type : "text";
}

/** Ask the service: `{status, value}`; status 0 where no answer came, value null where it is no JSON object. */
export async function ask(method, path, body) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const options = { method, headers, cache: "no-store", credentials: "omit", redirect: "error" };
  try {
    const answer = await fetch(path, { ...options, body: body === undefined ? undefined : JSON.stringify(body) });
    const value = await answer.json().catch(() => null);
    return { status: answer.status, value: typeof value === "object" && value !== null ? value : null };
  } catch {
    return { status: 0, value: null };
  }
}

/** Say something to a screen reader; the same text twice is said twice. */
export function announce(text) {
  const status = document.getElementById("status");
  status.textContent = "";
  requestAnimationFrame(() => {
    status.textContent = text;
  });
}

/** A button that says what it will do next, "Show" or "Hide", and of what; `changed` is called with whether it now shows. */
export function revealButton(label, changed) {
  let shows = false;
  const word = make("span", {}, "Show");
  const turn = () => {
    shows = !shows;
    word.textContent = shows ? "Hide" : "Show";
    changed(shows);
  };
  return make("button", { type: "button", class: "reveal", on: { click: turn } }, word, make("span", { class: "sr-only" }, ` ${label}`));
}

/** Put a state on the page: its name (for styles and tests), its nodes, and the focus on its heading. */
export function show(state, ...nodes) {
  const stage = document.getElementById("stage");
  stage.dataset.state = state;
  stage.replaceChildren(...nodes.flat().filter((node) => node !== null && node !== undefined));
  stage.removeAttribute("aria-busy");
  const heading = stage.querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    scrollTo({ top: 0 });
  }
}

/** The same under a heading of ours, which is the page's title, too, and below the drawing `drawing`. */
export function showTitled(state, drawing, title, ...nodes) {
  document.title = title;
  show(state, mark(drawing), make("h1", {}, title), ...nodes);
}

/** Rows of a name and what it is, as a list; a row that is null, or false, is left out. */
export function facts(rows) {
  const lines = rows.filter(Boolean).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("dl", { class: "facts" }, lines);
}

/** A state in which nothing more can be done here: what is so, why, and the reason's name for support. */
export function showReason({ reason, title, text, advice, actions = [] }) {
  showTitled(
    "refused",
    "refused",
    title,
    make("p", { class: "lead" }, text),
    advice ? make("p", {}, advice) : null,
    actions.length ? make("div", { class: "actions" }, actions) : null,
    make("p", { class: "reason" }, "Reason: ", make("code", { id: "reason" }, reason)),
  );
  document.getElementById("stage").dataset.reason = reason;
}

const MARKS = {
  sealed: ["M4 7.5h16v10H4z", "M4 8l8 6 8-6"],
  open: ["M4 10l8-6 8 6v8H4z", "M4 10l8 5 8-5"],
  refused: ["M12 4a8 8 0 100 16 8 8 0 000-16z", "M12 8v5", "M12 16h.01"],
  done: ["M12 4a8 8 0 100 16 8 8 0 000-16z", "M8.5 12.2l2.4 2.4 4.6-5"],
  hidden: ["M4 12s3-5.5 8-5.5S20 12 20 12s-3 5.5-8 5.5S4 12 4 12z", "M5 19L19 5"],
};

/** The small drawing above a heading, for the eye alone. */
export function mark(name) {
  const attributes = { class: "mark", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" };
  return drawn("svg", attributes, MARKS[name].map((d) => drawn("path", { d })));
}

// Controls, and what turns the direction of text or is not seen at all: fillers and tags, which hold whole sentences
// for machines (joiners are left: emoji and scripts need them).
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** A label for the eye: an invisible character is shown as its code point. Halves of a pair, too. */
export function visible(text) {
  return String(text)
    .replace(UNSEEN, (char) => `⟨U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`)
    .replace(/\p{Surrogate}/gu, "\ufffd");
}

/** Whether a value holds invisible characters other than line breaks and tabs. */
export function hasUnseen(text) {
  return text.replace(/[\t\n\r]/g, "").search(UNSEEN) !== -1;
}

const MOMENT = new Intl.DateTimeFormat("en-GB", {
  weekday: "long", day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});

/** A moment for a person, in their own zone, which it names, with the exact one for programs; else the text itself. */
export function moment(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return make("span", {}, visible(text));
  return make("time", { datetime: date.toISOString() }, MOMENT.format(date));
}

/** How often something still opens: `This link opens once.`; `left` is null where that is not limited. */
export function opens(what, left) {
  if (left === null) return `${what} opens as often as you like.`;
  return `${what} opens ${left === 1 ? "once" : `${left} more times`}.`;
}

/** `1 view`, `2 views`. */
export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}
