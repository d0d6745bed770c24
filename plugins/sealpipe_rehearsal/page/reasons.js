// Why a share's link does not open, as a person is told it.

const ASK = "Ask the sender for a new link.";
const COPY = "Copy the whole link again, from the very message it came in: what stands behind the # is the key.";

export const REASONS = {
  "missing-key": {
    title: "The link has no key",
    text: "What stands behind the # of a link is the key to it, and this one came without. No view was used.",
    advice: `${COPY} If you have reloaded this page: the key is taken out of the address bar on purpose.`,
  },
  "malformed-key": {
    title: "The key in the link is damaged",
    text: "It is cut off, or something was added to it on its way. No view was used.",
    advice: COPY,
  },
  "encoded-hash": {
    title: "The link was changed on its way to you",
    text: "A program has written %23 where the link has a #. The key therefore went to the service as a part of the address. No view was used.",
    advice: `${COPY} If it has a %23 there, too: ${ASK.toLowerCase()} This one is best withdrawn.`,
  },
  "wrong-key": {
    title: "The key does not belong to this share",
    text: "The link's key is a whole one, but of another share. No view was used.",
    advice: COPY,
  },
  "not-found": {
    title: "There is no such share",
    text: "The service knows nothing under this link.",
    advice: `${COPY} If that is no help: ${ASK.toLowerCase()}`,
  },
  expired: { title: "The share has expired", text: "Its time is over: it cannot be opened any more.", advice: ASK },
  "used-up": {
    title: "The share is used up",
    text: "It has been opened as often as it may be.",
    advice: `If none of that was you, tell the sender at once: somebody else may have read it. ${ASK}`,
  },
  "no-tries-left": {
    title: "No tries are left",
    text: "A wrong passcode was given too often: the share cannot be opened any more.",
    advice: `If none of that was you, tell the sender. ${ASK}`,
  },
  deleted: { title: "The share was withdrawn", text: "The sender has ended it: it cannot be opened any more.", advice: ASK },
  "cannot-decrypt": {
    title: "The content does not decrypt",
    text: "The service handed it out, but it is not what was sealed with this link's key: it is damaged.",
    advice: `A view may have been used. ${ASK}`,
  },
  "no-answer": {
    title: "The service does not answer",
    text: "No view was used. Perhaps the rehearsal has ended, or the network is down.",
  },
  "not-available": { title: "That did not work", text: "The service answered something that this page does not know." },
  "no-webcrypto": {
    title: "This browser cannot decrypt here",
    text: "Decrypting needs WebCrypto, which browsers offer over https and on this computer only. No view was used.",
  },
};
for (const same of ["not-base64", "too-short"]) REASONS[same] = REASONS["cannot-decrypt"];
