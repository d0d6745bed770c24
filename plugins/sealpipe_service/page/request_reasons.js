// Why a request's link cannot be used: the texts for people.

const ASK = "Ask the sender of the link for a new one.";
const COPY = "Copy the whole access link again: the part after the # is the key.";

export const REASONS = {
  "not-found": {
    title: "Request not found",
    text: "The service does not know this link.",
    advice: `Copy the whole link again from the original message. If that does not help: ${lower(ASK)}`,
  },
  expired: { title: "The request has expired", text: "It accepts no more submissions. Nothing was sent.", advice: ASK },
  full: {
    title: "The request has all its submissions",
    text: "It has reached its maximum number of submissions. Nothing was sent.",
    advice: `If you have not submitted anything, tell the sender: someone else has used the link. ${ASK}`,
  },
  accesses: {
    title: "The form cannot be opened again",
    text: "It was opened the maximum number of times. Nothing was sent.",
    advice: `If that was not you, tell the sender of the link. ${ASK}`,
  },
  address: {
    title: "The request is not open to this network",
    text: "It accepts submissions from certain addresses only, and yours is not one of them. Nothing was sent.",
    advice: "Try your company's network or VPN. If that does not help, tell the sender of the link.",
  },
  ...Object.fromEntries(
    ["login", "mfa", "domain"].map((reason) => [
      reason,
      {
        title: "The request is restricted",
        text: "Only people who are signed in can submit, and nobody can sign in here. Nothing was sent.",
        advice: "Tell the sender of the link: a passcode can restrict a request, too.",
      },
    ]),
  ),
  "no-prompts": {
    title: "The request asks for nothing",
    text: "It has no prompts, so there is nothing to fill in.",
    advice: ASK,
  },
  "bad-public-key": {
    title: "The request cannot accept submissions",
    text: "Its public key is damaged. Nothing was sent.",
    advice: ASK,
  },
  "malformed-key": {
    title: "The key in the link is damaged",
    text: "It is truncated, or something was added to it. The submissions are unchanged.",
    advice: COPY,
  },
  "encoded-hash": {
    title: "The link was changed on its way to you",
    text: "A program replaced the # of the link with %23, so the key was sent to the service as part of the address.",
    advice: "If you were asked to fill in the form, ask for a link without the key. If you created the request, collect its submissions and create a new one.",
  },
  "wrong-key": {
    title: "The key does not belong to this request",
    text: "The key in the link is valid, but belongs to another request.",
    advice: COPY,
  },
  "no-answer": {
    title: "The service does not answer",
    text: "The service may have stopped, or the network is down. Nothing was sent.",
  },
  "too-many": { title: "Too many tries", text: "Nothing was sent. Please wait a minute, and try again." },
  "not-available": { title: "That did not work", text: "The service sent a response that this page does not know." },
  "no-webcrypto": {
    title: "This browser cannot encrypt here",
    text: "Encryption needs WebCrypto, which browsers offer only over https and on this computer. Nothing was sent.",
  },
};

function lower(text) {
  return text[0].toLowerCase() + text.slice(1);
}
