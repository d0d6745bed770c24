// Why a request's link cannot be used, as a person is told it.

const ASK = "Ask whoever sent you the link for a new one.";
const COPY = "Copy the whole access link again, from where it was kept: what stands behind the # is the key.";

export const REASONS = {
  "not-found": {
    title: "There is no such request",
    text: "The service knows nothing under this link.",
    advice: `Copy the whole link again, from the very message it came in. If that is no help: ${lower(ASK)}`,
  },
  expired: { title: "The request has expired", text: "It takes no answers any more. Nothing was sent.", advice: ASK },
  full: {
    title: "The request has its answers",
    text: "It takes no more than it was made for, and has them all. Nothing was sent.",
    advice: `If you have not answered yet, tell them: somebody else has used the link. ${ASK}`,
  },
  accesses: {
    title: "The form was opened as often as it may be",
    text: "It cannot be opened again. Nothing was sent.",
    advice: `If none of that was you, tell whoever sent you the link. ${ASK}`,
  },
  address: {
    title: "The request is not open to this network",
    text: "It may be answered from certain addresses only, and yours is not one of them. Nothing was sent.",
    advice: "Try from your company's network, or through its VPN. If that is no help, tell whoever sent you the link.",
  },
  "no-prompts": {
    title: "The request asks for nothing",
    text: "It was made without a single prompt, so there is nothing to fill in.",
    advice: ASK,
  },
  "bad-public-key": {
    title: "The request cannot be answered",
    text: "The key that answers are sealed to is damaged. Nothing was sent.",
    advice: ASK,
  },
  "malformed-key": {
    title: "The key in the link is damaged",
    text: "It is cut off, or something was added to it on its way. The submissions are as they were.",
    advice: COPY,
  },
  "encoded-hash": {
    title: "The link was changed on its way to you",
    text: "A program has written %23 where the link has a #. The key therefore went to the service as a part of the address.",
    advice: "Who was sent this as a collect link has no use for the key. Whoever asked should collect, and make a new request.",
  },
  "wrong-key": {
    title: "The key does not belong to this request",
    text: "The link's key is a whole one, but of another request: it opens nothing here.",
    advice: COPY,
  },
  "no-answer": {
    title: "The service does not answer",
    text: "Perhaps the rehearsal has ended, or the network is down. Nothing was sent.",
  },
  "not-available": { title: "That did not work", text: "The service answered something that this page does not know." },
  "no-webcrypto": {
    title: "This browser cannot seal here",
    text: "Sealing needs WebCrypto, which browsers offer over https and on this computer only. Nothing was sent.",
  },
};

function lower(text) {
  return text[0].toLowerCase() + text.slice(1);
}
