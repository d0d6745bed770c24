// The requester, at the access link: every submission, decrypted in this browser with the link's key.

import { announce, ask, count, facts, make, mark, moment, serviceTag, show, showTitled, visible } from "./base.js";
import { fieldList } from "./fields.js";
import { WireError, encodeBase64url, keyFromSeed, openBox, readFields } from "./wire.js";

// More than that of each submission at once makes a page slow; the rest comes when it is asked for.
const AT_ONCE = 100;

const UNREAD = {
  "cannot-decrypt": "sealed to another key, or damaged",
  "not-fields": "opened, but not a list of fields",
};

/** Fetch the ciphertexts, open what opens, show all of it. */
export async function openSubmissions(route, seed, refuse, ended) {
  const pair = await keyFromSeed(seed, serviceTag());
  const look = async (again) => {
    const { status, value } = await ask("GET", `${route}/submissions`);
    if (status !== 200 || !value) return ended(status, value, () => look(false));
    // Compared with the service's public key: with another link's key, every submission would just fail to open.
    if (value.public_key !== encodeBase64url(pair.publicKey)) return refuse("wrong-key");
    const opened = await Promise.all(value.submissions.map((each, at) => open(pair, each, at + 1)));
    return present(value, opened.reverse(), look, again);
  };
  await look(false);
}

async function open(pair, { short_code: code, created_at: created, data }, number) {
  try {
    return { number, code, created, fields: readFields(await openBox(pair, data, serviceTag())), reason: null };
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return { number, code, created, fields: [], reason: error.reason };
  }
}

function present(details, all, look, again) {
  const read = all.filter((each) => each.reason === null);
  const unread = all.filter((each) => each.reason !== null);
  const title = visible(details.title);
  document.title = title;
  const refresh = make("button", { type: "button", id: "look-again", on: { click: () => look(true) } }, "Look again");
  const close = make("button", { type: "button", id: "hide", on: { click: hide } }, "Hide them now");
  show(
    read.length || unread.length ? "opened" : "empty",
    mark(read.length ? "open" : "sealed"),
    make("h1", { dir: "auto" }, title),
    make("p", { class: "lead" }, `${howMany(read)} The key is in your link and has not left this browser.`),
    facts(aboutRequest(details)),
    unread.length ? unreadNote(unread) : null,
    details.skipped_not_end_to_end_encrypted ? skippedNote(details.skipped_not_end_to_end_encrypted) : null,
    read.length ? make("p", { class: "note" }, "The sender is not authenticated: anyone with the collect link can submit.") : null,
    make("div", { class: "actions" }, refresh, read.length ? close : null),
    read.map(submission),
  );
  announce(`${again ? "Looked again. " : ""}${howMany(read)}${unread.length ? ` ${count(unread.length, "submission")} could not be opened.` : ""}`);
}

function howMany(read) {
  return read.length ? `${count(read.length, "submission")}, opened in this browser.` : "There is no submission to read here yet.";
}

function aboutRequest(details) {
  const limit = details.max_submission;
  return [
    ["Submissions", limit === null ? `${details.received} received` : `${details.received} received of at most ${limit}`],
    details.expired_at ? ["Accepts submissions until", moment(details.expired_at)] : ["Accepts submissions", "no: the request has expired"],
  ];
}

function unreadNote(unread) {
  const lines = unread.map(({ number, code, reason }) => make("li", {}, `Submission ${number}, `, make("code", {}, visible(code)), `: ${UNREAD[reason] ?? "damaged"} (${reason})`));
  return make(
    "div",
    { class: "error", id: "unread" },
    `${count(unread.length, "submission")} could not be opened. They stay at the service unchanged.`,
    make("ul", { class: "unread" }, lines),
  );
}

function skippedNote(number) {
  return make("p", { class: "error", id: "skipped" }, `${count(number, "submission")} without end-to-end encryption: not shown, and not to be trusted.`);
}

function submission({ number, code, created, fields }) {
  const id = `submission-${number}`;
  return make(
    "section",
    { class: "submission", "aria-labelledby": id },
    make("h2", { id }, `Submission ${number}`),
    make("p", { class: "hint" }, moment(created), ", number ", make("code", {}, visible(code))),
    fields.length ? fieldList(fields, "h3", AT_ONCE) : make("p", {}, "It has no fields."),
  );
}

function hide() {
  const title = "The submissions are hidden again";
  showTitled(
    "hidden",
    "hidden",
    title,
    make("p", { class: "lead" }, "They and the key are removed from this page. The access link opens them again."),
  );
  announce(title);
}
