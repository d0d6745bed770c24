// The page of a request's links: without a fragment it is the collect link, for the submitter; with one the access
// link, for the requester. The service sees the same address for both.

import { codeSegment, keepNothing, make, showReason, takeEncodedHash, takeFragment } from "./base.js";
import { openSubmissions } from "./owner.js";
import { REASONS } from "./request_reasons.js";
import { answer } from "./submitter.js";
import { WireError, decodeFragment } from "./wire.js";

const fragment = takeFragment();
const code = codeSegment();

keepNothing();
start();

async function start() {
  const route = `/links/requests/${code}`;
  try {
    if (!crypto.subtle) throw new WireError("no-webcrypto", "the browser offers no WebCrypto here");
    if (takeEncodedHash(fragment)) throw new WireError("encoded-hash", "the # of the link was encoded on its way");
    if (fragment) await openSubmissions(route, decodeFragment(fragment), refuse, ended);
    else await answer(route, refuse, ended);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    refuse(error.reason);
  }
}

function refuse(reason, more = {}) {
  showReason({ reason, ...(REASONS[reason] ?? REASONS["not-available"]), ...more });
}

/** What the service's answers mean where nothing can be done here; `again` tries once more. */
function ended(status, value, again) {
  if ([404, 410].includes(status) && ["not-found", "expired", "full", "accesses"].includes(value?.reason)) {
    return refuse(value.reason);
  }
  if (status === 403 && ["address", "login", "mfa", "domain"].includes(value?.reason)) return refuse(value.reason);
  const retry = make("button", { type: "button", on: { click: again } }, "Try again");
  if (status === 429) return refuse("too-many", { actions: [retry] });
  return refuse(status === 0 ? "no-answer" : "not-available", { actions: [retry] });
}
