// A third reading of the wire format, with WebCrypto as a browser has it. Written from the specification and
// tests/unit/wire/vectors/README.md; nothing here is shared with the Python code. Bytes are Uint8Array.
const { subtle } = globalThis.crypto;
const CURVE = { name: "ECDH", namedCurve: "P-256" };
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const NOTHING = new Uint8Array(0);

/** Input that must not be taken: which part is at fault, and in which way. */
export class Refusal extends Error {
  constructor(part, reason) {
    super([part, reason].filter(Boolean).join(" "));
  }
}

export const utf8 = (text) => new TextEncoder().encode(text);
export const text = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const unhex = (digits) => Uint8Array.from(digits.match(/[0-9a-f]{2}/g) ?? [], (pair) => parseInt(pair, 16));
const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const insist = (holds, part, reason) => {
  if (!holds) throw new Refusal(part, reason);
};

// -- base64 (RFC 4648, sections 4 and 5) ---------------------------------------------------------------------------
const SHARED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const STANDARD = { digits: `${SHARED}+/`, padded: true, word: "not-base64" };
const URL_SAFE = { digits: `${SHARED}-_`, padded: false, word: "not-base64url" };

function encode(bytes, { digits, padded }) {
  const out = [];
  for (let at = 0; at < bytes.length; at += 3) {
    const group = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const characters = [18, 12, 6, 0].map((shift) => digits[(group >> shift) & 63]);
    const used = Math.min(bytes.length - at, 3) + 1;
    out.push(...characters.slice(0, used), padded ? "=".repeat(4 - used) : "");
  }
  return out.join("");
}

function decode(source, { digits, padded, word }) {
  const body = source.replaceAll("=", "");
  const values = Array.from(body, (character) => digits.indexOf(character));
  insist(!values.includes(-1), "encoding", word);
  const padding = padded ? "=".repeat(-body.length & 3) : "";
  insist(body.length % 4 !== 1 && source === body + padding, "encoding", "bad-padding");
  const out = new Uint8Array(Math.floor((body.length * 3) / 4));
  let [held, bits, at] = [0, 0, 0];
  for (const value of values) {
    held = ((held << 6) | value) & 0xfff;
    bits += 6;
    if (bits >= 8) out[at++] = (held >> (bits -= 8)) & 0xff;
  }
  insist((held & ((1 << bits) - 1)) === 0, "encoding", "non-canonical");
  return out;
}

export const base64 = (bytes) => encode(bytes, STANDARD);
export const base64url = (bytes) => encode(bytes, URL_SAFE);
export const unbase64 = (source) => decode(source, STANDARD);
export const unbase64url = (source) => decode(source, URL_SAFE);

// -- primitives ----------------------------------------------------------------------------------------------------
async function hkdf(ikm, salt, info, size = 32) {
  const key = await subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
  return new Uint8Array(await subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, size * 8));
}

async function gcm(verb, key, iv, data) {
  const imported = await subtle.importKey("raw", key, "AES-GCM", false, [verb]);
  return new Uint8Array(await subtle[verb]({ name: "AES-GCM", iv, tagLength: 128 }, imported, data));
}

async function opened(part, key, iv, data) {
  try {
    return await gcm("decrypt", key, iv, data);
  } catch {
    throw new Refusal(part, "wrong-key");
  }
}

function passcodeBytes(passcode) {
  insist(typeof passcode === "string", "passcode", "not-text");
  insist(passcode !== "", "passcode", "empty-passcode");
  insist(passcode.isWellFormed(), "passcode", "lone-surrogate");
  return utf8(passcode);
}

const tagged = (tag, rest) => {
  insist(typeof tag === "string" && /^[a-z0-9]+$/.test(tag), "usage", "");
  return utf8(`${tag}-${rest}`);
};

// -- content key, envelope, tokens, fragment -----------------------------------------------------------------------
async function envelopeKey(contentKey, salt, passcode) {
  insist(contentKey.length === 32, "envelope", "bad-content-key");
  const info = passcode === undefined ? utf8("content") : joined(utf8("content|"), passcodeBytes(passcode));
  return hkdf(contentKey, salt, info);
}

export async function sealEnvelope(contentKey, plaintext, passcode, salt, iv) {
  insist(salt.length === 16, "envelope", "bad-salt");
  insist(iv.length === 12, "envelope", "bad-iv");
  const key = await envelopeKey(contentKey, salt, passcode);
  return base64(joined(salt, iv, await gcm("encrypt", key, iv, plaintext)));
}

export async function openEnvelope(contentKey, data, passcode) {
  const raw = unbase64(data);
  insist(raw.length >= 16 + 12 + 16, "envelope", "too-short");
  const key = await envelopeKey(contentKey, raw.slice(0, 16), passcode);
  return opened("envelope", key, raw.slice(16, 28), raw.slice(28));
}

export async function accessToken(contentKey) {
  insist(contentKey.length === 32, "envelope", "bad-content-key");
  return base64url(await hkdf(contentKey, NOTHING, utf8("access")));
}

export const passcodeVerifier = async (passcode) =>
  base64url(await hkdf(passcodeBytes(passcode), NOTHING, utf8("verify")));

export const fragment = (contentKey) => `1${base64url(contentKey)}`;

export function readFragment(source) {
  const body = source.startsWith("#") ? source.slice(1) : source;
  insist(body !== "", "fragment", "missing-key");
  let key = NOTHING;
  try {
    if (body[0] === "1") key = unbase64url(body.slice(1));
  } catch {
    // no key, as below
  }
  insist(key.length === 32, "fragment", "malformed-key");
  return key;
}

// -- key pairs and sealed boxes ------------------------------------------------------------------------------------
const PKCS8 = unhex("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420");

async function privateKey(scalar) {
  const value = BigInt(`0x${hex(scalar) || "0"}`);
  insist(scalar.length === 32 && value > 0n && value < ORDER, "seed", "bad-scalar");
  return subtle.importKey("pkcs8", joined(PKCS8, scalar), CURVE, true, ["deriveBits"]);
}

async function publicPoint(key) {
  const { x, y } = await subtle.exportKey("jwk", key);
  return joined(Uint8Array.of(4), unbase64url(x), unbase64url(y));
}

async function publicKey(point) {
  insist(point.length === 65, "point", "bad-point-length");
  insist(point[0] === 4, "point", "not-uncompressed");
  try {
    return await subtle.importKey("raw", point, CURVE, false, []);
  } catch {
    throw new Refusal("point", "not-on-curve");
  }
}

async function wrappingKey(mine, theirs, salt, tag) {
  const shared = await subtle.deriveBits({ name: "ECDH", public: theirs }, mine, 256);
  return hkdf(new Uint8Array(shared), salt, tagged(tag, "request-submission"));
}

export async function custodySeed(secret) {
  insist(typeof secret === "string" && secret !== "" && secret.isWellFormed(), "seed", "bad-custody-secret");
  return hkdf(utf8(secret), NOTHING, utf8("custody"));
}

async function scalarOf(seed, tag) {
  insist(seed.length === 32, "seed", "bad-seed");
  const wide = await hkdf(seed, NOTHING, tagged(tag, "ecdh-p256-scalar"), 48);
  return unhex(((BigInt(`0x${hex(wide)}`) % (ORDER - 1n)) + 1n).toString(16).padStart(64, "0"));
}

export async function keyPair(seed, tag) {
  const scalar = await scalarOf(seed, tag);
  return { scalar, publicKey: await publicPoint(await privateKey(scalar)) };
}

export async function sealBox(recipient, payload, tag, ephemeral, salt, iv) {
  const theirs = await publicKey(recipient);
  const mine = await privateKey(ephemeral);
  insist(salt.length === 16, "box", "bad-salt");
  insist(iv.length === 12, "box", "bad-iv");
  const body = await gcm("encrypt", await wrappingKey(mine, theirs, salt, tag), iv, payload);
  return base64(joined(Uint8Array.of(1), await publicPoint(mine), salt, iv, body));
}

export async function openBox(seed, blob, tag) {
  const raw = unbase64(blob);
  insist(raw.length === 0 || raw[0] === 1, "box", "bad-version");
  insist(raw.length >= 1 + 65 + 16 + 12 + 16, "box", "too-short");
  const theirs = await publicKey(raw.slice(1, 66));
  const mine = await privateKey(await scalarOf(seed, tag));
  const key = await wrappingKey(mine, theirs, raw.slice(66, 82), tag);
  return opened("box", key, raw.slice(82, 94), raw.slice(94));
}
