// Why a share's link does not open: the texts for people.

const ASK = "Ask the sender for a new link.";
const COPY = "Copy the whole link again from the original message: the part after the # is the key.";

export const REASONS = {
  "missing-key": {
    title: "The link has no key",
    text: "The part of a link after the # is the key, and this link has none. No view was used.",
    advice: `${COPY} If you reloaded this page: the key is removed from the address bar on purpose.`,
  },
  "malformed-key": {
    title: "The key in the link is damaged",
    text: "It is truncated, or something was added to it. No view was used.",
    advice: COPY,
  },
  "encoded-hash": {
    title: "The link was changed on its way to you",
    text: "A program replaced the # of the link with %23, so the key was sent to the service as part of the address. No view was used.",
    advice: `${COPY} If it has %23 there, too: ${ASK.toLowerCase()} The sender should expire this one.`,
  },
  "wrong-key": {
    title: "The key does not belong to this share",
    text: "The key in the link is valid, but belongs to another share. No view was used.",
    advice: COPY,
  },
  "not-found": {
    title: "Share not found",
    text: "The service does not know this link.",
    advice: `${COPY} If that does not help: ${ASK.toLowerCase()}`,
  },
  expired: { title: "The share has expired", text: "It can no longer be opened.", advice: ASK },
  "used-up": {
    title: "The share is used up",
    text: "All of its views are used.",
    advice: `If you did not open it, tell the sender at once: someone else may have read it. ${ASK}`,
  },
  "no-tries-left": {
    title: "No tries are left",
    text: "Too many wrong passcodes were entered: the share can no longer be opened.",
    advice: `If that was not you, tell the sender. ${ASK}`,
  },
  deleted: { title: "The share was withdrawn", text: "The sender expired it: it can no longer be opened.", advice: ASK },
  "cannot-decrypt": {
    title: "The content cannot be decrypted",
    text: "It is damaged, or it was not encrypted with this link's key.",
    advice: `A view may have been used. ${ASK}`,
  },
  "no-answer": {
    title: "The service does not answer",
    text: "No view was used. The service may have stopped, or the network is down.",
  },
  "too-many": { title: "Too many tries", text: "No view was used. Please wait a minute, and try again." },
  "not-available": { title: "That did not work", text: "The service sent a response that this page does not know." },
  "no-webcrypto": {
    title: "This browser cannot decrypt here",
    text: "Decryption needs WebCrypto, which browsers offer only over https and on this computer. No view was used.",
  },
};
for (const same of ["not-base64", "too-short"]) REASONS[same] = REASONS["cannot-decrypt"];
