// The submitter, at the collect link. No access is used before the button is pressed. Values are encrypted here to
// the request's public key before they are sent.

import { announce, ask, facts, make, mark, moment, opens, revealButton, serviceTag, show, showTitled, statesIdentity, visible } from "./base.js";
import { entry } from "./entries.js";
import { decodeBase64url, sealBox, writeFields } from "./wire.js";

const SEND = "Seal and send";

// Conditions of a request that a sign-in could meet.
const SIGN_IN = {
  login: "Only people who are signed in can submit.",
  mfa: "Only people who are signed in with a second factor can submit.",
  domain: "Only people of certain organisations can submit, and you are not signed in with an address of one of them.",
};

/** Look at the request, ask for what it wants, open its form. `refuse` and `ended` tell why nothing can be done. */
export async function answer(route, refuse, ended) {
  const { status, value } = await ask("GET", route);
  const part = { route, refuse, ended, again: () => answer(route, refuse, ended) };
  if (status !== 200 || !value) return ended(status, value, part.again);
  return ready({ ...part, details: value, who: {} });
}

// --- Before the form -----------------------------------------------------------------------------------------

function ready(part) {
  const { details } = part;
  const title = visible(details.title);
  document.title = title;
  const input = details.passcode_required
    ? make("input", { id: "passcode", type: "password", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-describedby": "passcode-hint error", "aria-required": "true" })
    : null;
  const read = () => {
    if (!input) return {};
    if (input.value !== "") return { passcode: input.value };
    input.setAttribute("aria-invalid", "true");
    return "Please type the passcode.";
  };
  show(
    "ready",
    mark("sealed"),
    make("h1", { dir: "auto" }, title),
    make("p", { class: "lead" }, asker(details), " asks you for information. It is encrypted in this browser, and only they can read it."),
    make("p", { class: "quiet" }, `${opens("The form", details.accesses_left)} Loading this page does not count.`),
    facts([["Open until", moment(details.expired_at)]]),
    gate(part, "Open the form", input ? passcodeEntry(input) : null, input, read),
  );
}

// Who asks: the only name here that the service vouches for; a title is anything that its writer likes.
function asker({ account }) {
  return make("span", {}, "The account ", make("strong", { id: "asker" }, make("bdi", {}, visible(account))));
}

function passcodeEntry(input) {
  const toggle = revealButton("passcode", (shows) => (input.type = shows ? "text" : "password"));
  return make(
    "div",
    { class: "entry" },
    make("label", { for: input.id }, "Passcode"),
    make("p", { class: "hint", id: "passcode-hint" }, "Required. The sender of the link gives it to you by another channel."),
    make("div", { class: "with-button" }, input, toggle),
  );
}

/** A small form that leads to the request's own; `read` gives what is said of oneself, or what is wrong with it. */
function gate(part, word, inside, first, read) {
  const error = make("p", { class: "error", id: "error", role: "alert" });
  const button = make("button", { type: "submit", class: "primary" }, word);
  const tell = (text) => {
    error.textContent = text;
    (first ?? button).focus();
  };
  const open = async () => {
    const said = read();
    if (typeof said === "string") return tell(said);
    const who = { ...part.who, ...said };
    busy(button, "Opening…", true);
    error.textContent = "";
    const { status, value } = await ask("POST", `${part.route}/open`, who);
    busy(button, word, false);
    if (status === 200 && value) return form({ ...part, who, asked: value });
    if (status === 403 && value?.reason === "passcode" && who.passcode) {
      first.setAttribute("aria-invalid", "true");
      first.select();
      return tell("Wrong passcode. No access was used.");
    }
    if (status === 403 && SIGN_IN[value?.reason] && statesIdentity()) return signIn({ ...part, who }, value.reason);
    return part.ended(status, value, part.again);
  };
  return submitting(make("form", { novalidate: true, autocomplete: "off" }, inside, error, button), button, open);
}

function submitting(element, button, act) {
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    if (button.getAttribute("aria-disabled") !== "true") act();
  });
  return element;
}

function busy(button, word, works) {
  button.setAttribute("aria-disabled", String(works));
  button.textContent = word;
  if (works) announce(word);
}

/** The rehearsal has no accounts: the submitter states an identity. */
function signIn(part, reason) {
  const title = "The request is restricted";
  document.title = title;
  const email = make("input", { id: "email", type: "email", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-describedby": "email-hint error", value: part.who.signed_in_as ?? null });
  const mfa = make("input", { id: "mfa", type: "checkbox", checked: part.who.mfa === true });
  const read = () => {
    if (email.value.trim() === "") {
      email.setAttribute("aria-invalid", "true");
      return "Please type an address.";
    }
    return { signed_in_as: email.value.trim(), mfa: mfa.checked };
  };
  const inside = [
    make(
      "div",
      { class: "entry" },
      make("label", { for: "email" }, "Signed in as (email address)"),
      make("p", { class: "hint", id: "email-hint" }, "A rehearsal has no accounts: enter the address that you would be signed in with. No email is sent."),
      email,
    ),
    make("div", { class: "entry choice" }, mfa, make("label", { for: "mfa" }, "with a second factor")),
  ];
  show(
    "sign-in",
    mark("refused"),
    make("h1", {}, title),
    make("p", { class: "lead" }, SIGN_IN[reason]),
    gate(part, "Go on", inside, email, read),
    make("p", { class: "reason" }, "Reason: ", make("code", { id: "reason" }, reason)),
  );
  document.getElementById("stage").dataset.reason = reason;
}

// --- The form ------------------------------------------------------------------------------------------------

function form(part) {
  const { asked } = part;
  if (!asked.fields.length) return part.refuse("no-prompts");
  const warn = (event) => event.preventDefault();
  // Leaving with something typed and not sent is asked about first.
  const changed = () => {
    removeEventListener("beforeunload", warn);
    if (entries.some((each) => !each.empty())) addEventListener("beforeunload", warn);
  };
  const entries = asked.fields.map((field, _, all) => entry(field, all.length === 1, changed));
  const error = make("p", { class: "error", id: "error", role: "alert" });
  const button = make("button", { type: "submit", class: "primary" }, SEND);
  const element = make("form", { novalidate: true, autocomplete: "off" }, entries.map(({ node }) => node), error, button);
  const now = { ...part, entries, error, button, leave: () => removeEventListener("beforeunload", warn) };
  show(
    "form",
    mark("open"),
    make("h1", { dir: "auto" }, visible(asked.title)),
    asked.description?.trim() ? make("p", { class: "lead", dir: "auto" }, visible(asked.description)) : null,
    make("p", { class: "note" }, "What you type is encrypted in this browser before it is sent. Only the requester has the key."),
    entries.length > 1 ? make("p", { class: "quiet" }, "No single field is required, but fill in at least one.") : null,
    submitting(element, button, () => send(now)),
  );
  return undefined;
}

async function send(now) {
  const { entries, error, button } = now;
  error.textContent = "";
  entries.forEach((each) => each.mark(""));
  const wrong = entries.find((each) => each.problem());
  if (wrong) return tell(now, wrong.problem(), wrong);
  if (entries.every((each) => each.empty())) return tell(now, "Nothing is filled in yet.", entries[0]);
  busy(button, "Sealing and sending…", true);
  try {
    const sealed = await sealBox(decodeBase64url(now.asked.public_key), writeFields(entries.map((each) => each.field())), serviceTag());
    const { status, value } = await ask("POST", `${now.route}/submit`, { ...now.who, data: sealed });
    if (status === 201 && value) return sent(now, value);
    return tell(now, notSent(status, value));
  } catch (problem) {
    // The key is the service's word: text that is no key, or a point that is not on the curve.
    if (["bad-public-key", "not-base64", "not-base64url"].includes(problem.reason)) return now.refuse("bad-public-key");
    throw problem;
  } finally {
    busy(button, SEND, false);
  }
}

// Nothing that was typed is lost: the form stays.
const NOT_SENT = {
  full: "The request has reached its maximum number of submissions in the meantime.",
  expired: "The request has expired in the meantime.",
  "not-found": "The request was removed in the meantime.",
  "too-many": "Too many tries in a short time: please wait a minute, and send it again.",
};

function notSent(status, value) {
  if (status === 0) return "No response. What you typed is still here; it may have arrived anyway. You can send it again.";
  if (status === 413) return "It is too long for the service. Nothing was stored; what you typed is still here.";
  return `${NOT_SENT[value?.reason] ?? "The service refused it."} Nothing was sent; what you typed is still here.`;
}

// What is wrong with an entry is shown beside it: a long form's end may be out of sight.
function tell({ error, button }, text, wrong = null) {
  if (wrong) wrong.mark(text);
  else error.textContent = text;
  (wrong ?? button).focus();
}

function sent(now, details) {
  now.leave();
  const title = "Sent, and only they can read it";
  showTitled(
    "sent",
    "done",
    title,
    make("p", { class: "lead" }, "Your submission was encrypted in this browser. The service stores it but cannot read it; only the requester has the key."),
    make("p", {}, "Nothing of it stays on this page. To correct something, open the link again, send another submission and tell the requester which one counts."),
    facts([["Your submission's code", make("code", { id: "number" }, visible(details.short_code))]]),
  );
  announce(title);
}
