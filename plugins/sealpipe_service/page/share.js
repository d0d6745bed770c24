// The recipient, at a share's link. Nothing is spent before the button is pressed: until then the service is
// only asked whether the share can be opened and wants a passcode.

import {
  announce, ask, codeSegment, count, facts, keepNothing, make, mark, moment, opens, revealButton, show, showReason,
  showTitled, takeEncodedHash, takeFragment, visible,
} from "./base.js";
import { fieldList, howMany } from "./fields.js";
import { REASONS } from "./reasons.js";
import { startTimer } from "./timer.js";
import { WireError, accessToken, decodeFragment, openEnvelope, passcodeVerifier, readFields } from "./wire.js";

const TITLE = "Something was shared with you";

const fragment = takeFragment();
const code = codeSegment();
const route = `/links/shares/${code}`;

keepNothing();
start();

async function start() {
  try {
    await look(readKey());
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    refuse(error.reason);
  }
}

function readKey() {
  if (!crypto.subtle) throw new WireError("no-webcrypto", "the browser offers no WebCrypto here");
  if (takeEncodedHash(fragment)) throw new WireError("encoded-hash", "the # of the link was encoded on its way");
  return decodeFragment(fragment);
}

function refuse(reason, more = {}) {
  showReason({ reason, ...(REASONS[reason] ?? REASONS["not-available"]), ...more });
}

async function look(key) {
  const { status, value } = await ask("GET", route);
  if (status === 200 && value) ready(key, value);
  else ended(status, value, () => look(key));
}

/** What the service's answers mean where there is nothing to open. */
function ended(status, value, again) {
  const details = { time: "expired", views: "used-up", attempts: "no-tries-left", deleted: "deleted" }[value?.reason];
  if (status === 410 && details) return refuse(details);
  if (status === 404 && value?.reason === "not-found") return refuse("not-found");
  const retry = make("button", { type: "button", on: { click: again } }, "Try again");
  if (status === 429) return refuse("too-many", { actions: [retry] });
  return refuse(status === 0 ? "no-answer" : "not-available", { actions: [retry] });
}

// --- Before it is opened -------------------------------------------------------------------------------------

function ready(key, details) {
  document.title = TITLE;
  const error = make("p", { class: "error", id: "error", role: "alert" });
  const entry = details.passcode_required ? passcodeEntry(details.attempts_left) : null;
  const button = make("button", { type: "submit", class: "primary", id: "open" }, "Open it");
  const form = make("form", { novalidate: true, autocomplete: "off" }, entry, error, button);
  const part = { key, details, error, button, left: details.attempts_left };
  if (entry) Object.assign(part, { input: entry.querySelector("input"), tries: entry.querySelector("#tries") });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (button.getAttribute("aria-disabled") !== "true") open(part);
  });
  show(
    "ready",
    mark("sealed"),
    make("h1", {}, TITLE),
    make("p", { class: "lead" }, "It is encrypted, and only this link opens it. Open it when you are ready to read it."),
    make("p", { class: "quiet" }, `${opens("This link", details.views_left)} Loading this page does not count.`),
    facts([
      ["Available until", until(details)],
      details.timed_view ? ["Visible for", `${seconds(details.timed_view)} once it is open`] : null,
    ]),
    form,
  );
}

function until({ expired_at: end, views_left: left }) {
  if (end) return moment(end);
  return left === null ? "the sender withdraws it" : "it is used up, or the sender withdraws it";
}

function passcodeEntry(left) {
  const input = make("input", {
    id: "passcode", type: "password", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    "aria-describedby": "tries error", "aria-required": "true",
  });
  const toggle = revealButton("passcode", (shows) => (input.type = shows ? "text" : "password"));
  return make(
    "div",
    { class: "entry" },
    make("label", { for: "passcode" }, "Passcode"),
    make("div", { class: "with-button" }, input, toggle),
    make("p", { class: "hint", id: "tries" }, passcodeHint(left)),
  );
}

function passcodeHint(left) {
  return `Required. The sender gives it to you by another channel. ${triesLeft(left)}`.trim();
}

function triesLeft(left) {
  return Number.isInteger(left) ? `You have ${count(left, "try", "tries")} left.` : "";
}

async function open(part) {
  const { key, details, input } = part;
  const passcode = details.passcode_required ? input.value : null;
  if (passcode === "") return wrong(part, "Please type the passcode. No try was used.");
  busy(part, true);
  try {
    const proof = { access_token: await accessToken(key) };
    if (passcode !== null) proof.passcode_verifier = await passcodeVerifier(passcode);
    const { status, value } = await ask("POST", `${route}/open`, proof);
    if (status === 200 && value) return await opened(key, passcode, value);
    return notOpened(part, status, value);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    if (error.reason === "not-text") return wrong(part, "This passcode is not valid text. No try was used.");
    return refuse(error.reason);
  } finally {
    busy(part, false);
  }
}

function notOpened(part, status, value) {
  if (status === 403 && value?.reason === "passcode-wrong") {
    if (value.attempts_left < 1) return refuse("no-tries-left");
    part.left = value.attempts_left;
    part.input.select();
    return wrong(part, `Wrong passcode. ${triesLeft(value.attempts_left)}`, "passcode-wrong");
  }
  // The share was there when the page looked: a viewer who cannot prove the token gets "not found".
  if (status === 404 && value?.reason === "not-found") return refuse("wrong-key");
  if (status === 0) return wrong(part, "No response. A view may have been used; please try again.", "no-answer");
  return ended(status, value, () => look(part.key));
}

function wrong({ error, input, tries, left, button }, text, reason = "passcode-missing") {
  error.textContent = text;
  // What the error says of the tries is not said beside it.
  if (tries) tries.textContent = passcodeHint(reason === "passcode-wrong" ? null : left);
  document.getElementById("stage").dataset.reason = reason;
  if (input) input.setAttribute("aria-invalid", String(reason !== "no-answer"));
  (input ?? button).focus();
}

function busy({ button, error }, works) {
  button.setAttribute("aria-disabled", String(works));
  button.textContent = works ? "Opening…" : "Open it";
  if (works) {
    error.textContent = "";
    announce("Opening");
  }
}

// --- Open ------------------------------------------------------------------------------------------------------

async function opened(key, passcode, content) {
  const plaintext = await openEnvelope(key, content.data, passcode);
  let fields;
  let remark = null;
  try {
    fields = readFields(plaintext);
    if (!fields.length) remark = make("p", { class: "note" }, "The sender shared an empty list.");
  } catch {
    // A view is used already, so show the raw text rather than nothing.
    fields = [{ key: "Content", value: new TextDecoder().decode(plaintext), type: "multiline" }];
    remark = make("p", { class: "error", id: "reason" }, "The content is not a list of fields and is shown unchanged. (not-fields)");
  }
  const limit = content.timed_view;
  const hide = () => hidden(key, limit, content.views_left);
  const clock = limit ? make("strong", { role: "timer" }) : null;
  const title = content.title?.trim() ? visible(content.title) : "It is open";
  document.title = title;
  show(
    "open",
    mark("open"),
    make("h1", { dir: "auto" }, title),
    content.description?.trim() ? make("p", { class: "lead", dir: "auto" }, visible(content.description)) : null,
    limit ? make("div", { class: "note timer" }, make("span", {}, "Hidden again in ", clock)) : null,
    remark,
    fields.length ? fieldList(fields) : null,
    content.views_left === 0 ? null : facts([["Available until", until(content)]]),
    make("p", { class: "quiet", id: "opens" }, opensAgain(content.views_left)),
    make("div", { class: "actions" }, make("button", { type: "button", id: "hide", on: { click: hide } }, "Hide it now")),
  );
  announce(`It is open: ${howMany(fields)}.${limit ? ` Visible for ${seconds(limit)}.` : ""}`);
  if (limit) startTimer(limit, clock, hide);
}

function opensAgain(left) {
  if (left === 0) return "This was the last time: the link does not open again.";
  return left === 1 ? "The link opens once more." : opens("The link", left);
}

function hidden(key, limit, left) {
  if (document.getElementById("stage").dataset.state !== "open") return;
  const reopen = make("button", { type: "button", id: "again", on: { click: () => look(key) } }, "Back to the link");
  showTitled(
    "hidden",
    "hidden",
    "It is hidden again",
    make("p", { class: "lead" }, limit ? `The sender limits each view to ${seconds(limit)}.` : "The content is gone from this page."),
    make("p", {}, opensAgain(left)),
    left !== 0 ? make("div", { class: "actions" }, reopen) : null,
  );
  announce("The content is hidden");
}

function seconds(number) {
  return count(number, "second");
}
