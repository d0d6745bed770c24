// Bytes as text and text as bytes, strictly: what an encoder does not write is refused, and not repaired.

export class WireError extends Error {
  constructor(reason, message) {
    super(message);
    this.name = "WireError";
    this.reason = reason;
  }
}

/** base64: the standard alphabet with padding (RFC 4648 section 4), for `data` and wraps. */
export function encodeBase64(bytes) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += 0x6000) {
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(at, at + 0x6000))));
  }
  return pieces.join("");
}

/** The bytes of a base64 text; only what an encoder writes, so that one text means one array of bytes. */
export function decodeBase64(text) {
  const refused = new WireError("not-base64", "this is not base64");
  if (typeof text !== "string" || text.length % 4 !== 0) throw refused;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  if (/[^A-Za-z0-9+/]/.test(text.slice(0, text.length - padding))) throw refused;
  let binary;
  try {
    binary = atob(text);
  } catch {
    throw refused;
  }
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  // Bits behind the last byte are zero in what an encoder writes.
  if (padding && encodeBase64(bytes.subarray(-(3 - padding))) !== text.slice(-4)) throw refused;
  return bytes;
}

/** base64url: the URL-safe alphabet without padding (RFC 4648 section 5), for links and tokens. */
export function encodeBase64url(bytes) {
  return encodeBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function decodeBase64url(text) {
  if (typeof text !== "string" || /[^A-Za-z0-9_-]/.test(text) || text.length % 4 === 1) {
    throw new WireError("not-base64url", "this is not base64url");
  }
  const padding = "=".repeat((4 - (text.length % 4)) % 4);
  return decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/") + padding);
}

/** UTF-8 of a text; `what` it is, for the message. Reason: `not-text`. */
export function utf8(text, what) {
  // TextEncoder would put U+FFFD for half a surrogate pair, and two texts would become one.
  if (typeof text !== "string" || /\p{Surrogate}/u.test(text)) {
    throw new WireError("not-text", `${what} is not valid Unicode`);
  }
  return new TextEncoder().encode(text);
}

/** One array of all parts. */
export function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
