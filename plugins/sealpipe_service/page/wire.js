// The wire format in WebCrypto, a third reading of the specification ("Client-side encryption").
//
// Bytes are Uint8Array. What cannot be read is thrown as WireError, whose `reason` is one of the names below;
// no error holds a key, a passcode or a plaintext.

import { WireError, decodeBase64, decodeBase64url, encodeBase64, encodeBase64url, joined, utf8 } from "./encoding.js";
import { publicPoint, scalarFrom } from "./p256.js";

export { WireError, decodeBase64, decodeBase64url, encodeBase64, encodeBase64url };

const KEY = 32;
const SALT = 16;
const IV = 12;
const TAG = 16;
const POINT = 65;
const ENVELOPE_LEAST = SALT + IV + TAG;
const BOX_LEAST = 1 + POINT + SALT + IV + TAG;
const FRAGMENT_VERSION = "1";
const BOX_VERSION = 0x01;
const NO_SALT = new Uint8Array(0);

function passcodeBytes(passcode) {
  if (passcode === "") throw new WireError("empty-passcode", "an empty passcode is none");
  return utf8(passcode, "the passcode");
}

function exactly(size, bytes, reason, what) {
  if (!(bytes instanceof Uint8Array) || bytes.length !== size) {
    throw new WireError(reason, `${what} is ${size} bytes`);
  }
  return bytes;
}

function random(size) {
  return crypto.getRandomValues(new Uint8Array(size));
}

// --- Primitives ------------------------------------------------------------------------------------------

async function hkdf(ikm, salt, info, size) {
  const key = await crypto.subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
  return new Uint8Array(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, size * 8));
}

async function aesKey(bytes, use) {
  return crypto.subtle.importKey("raw", bytes, "AES-GCM", false, [use]);
}

async function encrypted(key, iv, plaintext) {
  const algorithm = { name: "AES-GCM", iv, tagLength: TAG * 8 };
  return new Uint8Array(await crypto.subtle.encrypt(algorithm, await aesKey(key, "encrypt"), plaintext));
}

async function decrypted(key, iv, body) {
  const algorithm = { name: "AES-GCM", iv, tagLength: TAG * 8 };
  try {
    return new Uint8Array(await crypto.subtle.decrypt(algorithm, await aesKey(key, "decrypt"), body));
  } catch {
    throw new WireError("cannot-decrypt", "it does not decrypt with this key");
  }
}

// --- Links and tokens ------------------------------------------------------------------------------------

/** The 32 bytes of a link's fragment, with or without its `#`. Reasons: `missing-key`, `malformed-key`. */
export function decodeFragment(text) {
  const body = (text ?? "").replace(/^#/, "");
  if (body === "") throw new WireError("missing-key", "the link has no key");
  let key = null;
  try {
    key = body.startsWith(FRAGMENT_VERSION) ? decodeBase64url(body.slice(1)) : null;
  } catch {
    // reported below, like any other damage
  }
  if (key === null || key.length !== KEY) throw new WireError("malformed-key", "the link's key is damaged");
  return key;
}

export function encodeFragment(key) {
  return FRAGMENT_VERSION + encodeBase64url(exactly(KEY, key, "malformed-key", "a key"));
}

export async function accessToken(contentKey) {
  exactly(KEY, contentKey, "bad-key", "a content key");
  return encodeBase64url(await hkdf(contentKey, NO_SALT, utf8("access"), KEY));
}

export async function passcodeVerifier(passcode) {
  return encodeBase64url(await hkdf(passcodeBytes(passcode), NO_SALT, utf8("verify"), KEY));
}

// --- The data envelope: salt, iv, ciphertext and tag ---------------------------------------------------------

async function envelopeKey(contentKey, salt, passcode) {
  exactly(KEY, contentKey, "bad-key", "a content key");
  const info = passcode === null ? utf8("content") : joined(utf8("content|"), passcodeBytes(passcode));
  return hkdf(contentKey, salt, info, KEY);
}

/** The `data` of a share. `pins` holds salt and iv for vectors alone; without it both are random. */
export async function sealEnvelope(contentKey, plaintext, passcode = null, pins = {}) {
  const salt = exactly(SALT, pins.salt ?? random(SALT), "bad-salt", "a salt");
  const iv = exactly(IV, pins.iv ?? random(IV), "bad-iv", "an iv");
  return encodeBase64(joined(salt, iv, await encrypted(await envelopeKey(contentKey, salt, passcode), iv, plaintext)));
}

/** The plaintext of `data`. Reasons: `not-base64`, `too-short`, `cannot-decrypt` (the passcode's fault, too). */
export async function openEnvelope(contentKey, data, passcode = null) {
  const blob = decodeBase64(data);
  if (blob.length < ENVELOPE_LEAST) throw new WireError("too-short", "the envelope is too short");
  const key = await envelopeKey(contentKey, blob.subarray(0, SALT), passcode);
  return decrypted(key, blob.subarray(SALT, SALT + IV), blob.subarray(SALT + IV));
}

// --- Key pairs and sealed boxes ------------------------------------------------------------------------------

/** The key pair of a 32-byte seed: `{seed, scalar, publicKey}`, the last as the 65-byte point. */
export async function keyFromSeed(seed, tag) {
  exactly(KEY, seed, "bad-seed", "a seed");
  const wide = await hkdf(seed, NO_SALT, utf8(`${tag}-ecdh-p256-scalar`), 48);
  return { seed, ...keyFromScalar(scalarFrom(wide)) };
}

/** The seed of a credential's third part, taken as the text that it is. */
export async function seedFromCustodySecret(secret) {
  return hkdf(utf8(secret, "the custody secret"), NO_SALT, utf8("custody"), KEY);
}

function keyFromScalar(scalar) {
  return { scalar, publicKey: publicPoint(scalar) };
}

async function privateKey({ scalar, publicKey }) {
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: encodeBase64url(scalar),
    x: encodeBase64url(publicKey.subarray(1, 33)),
    y: encodeBase64url(publicKey.subarray(33)),
  };
  return crypto.subtle.importKey("jwk", jwk, { name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);
}

async function sharedSecret(ours, theirPoint) {
  let theirs;
  try {
    if (theirPoint.length !== POINT || theirPoint[0] !== 0x04) throw new Error("compressed, or no point");
    theirs = await crypto.subtle.importKey("raw", theirPoint, { name: "ECDH", namedCurve: "P-256" }, false, []);
  } catch {
    throw new WireError("bad-public-key", "this is no public key");
  }
  return new Uint8Array(await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, ours, KEY * 8));
}

/** `payload` sealed to a public key (65 bytes), base64. `pins`: ephemeral (a scalar), salt, iv, for vectors. */
export async function sealBox(publicKey, payload, tag, pins = {}) {
  const salt = exactly(SALT, pins.salt ?? random(SALT), "bad-salt", "a salt");
  const iv = exactly(IV, pins.iv ?? random(IV), "bad-iv", "an iv");
  const ephemeral = pins.ephemeral ? await pinned(pins.ephemeral) : await drawn();
  const secret = await sharedSecret(ephemeral.privateKey, publicKey);
  const key = await hkdf(secret, salt, utf8(`${tag}-request-submission`), KEY);
  return encodeBase64(
    joined(new Uint8Array([BOX_VERSION]), ephemeral.point, salt, iv, await encrypted(key, iv, payload)),
  );
}

async function pinned(scalar) {
  const pair = keyFromScalar(exactly(KEY, scalar, "bad-scalar", "a scalar"));
  return { privateKey: await privateKey(pair), point: pair.publicKey };
}

async function drawn() {
  const pair = await crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);
  return { privateKey: pair.privateKey, point: new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)) };
}

/** What was sealed to a key pair. Reasons: `not-base64`, `too-short`, `bad-version`, `bad-public-key`, `cannot-decrypt`. */
export async function openBox(keyPair, blob, tag) {
  const bytes = decodeBase64(blob);
  if (bytes.length < BOX_LEAST) throw new WireError("too-short", "the box is too short");
  if (bytes[0] !== BOX_VERSION) throw new WireError("bad-version", "the box is of another version");
  let at = 1;
  const [point, salt, iv] = [POINT, SALT, IV].map((size) => bytes.subarray(at, (at += size)));
  const secret = await sharedSecret(await privateKey(keyPair), point);
  const key = await hkdf(secret, salt, utf8(`${tag}-request-submission`), KEY);
  return decrypted(key, iv, bytes.subarray(at));
}

// --- The field array -----------------------------------------------------------------------------------------

/** The array of a plaintext, as it stands. Reason `not-fields`, where it is no JSON array of objects in UTF-8. */
export function readFields(plaintext) {
  let fields;
  try {
    fields = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(plaintext));
  } catch {
    fields = null;
  }
  const isObject = (field) => typeof field === "object" && field !== null && !Array.isArray(field);
  if (!Array.isArray(fields) || !fields.every(isObject)) {
    throw new WireError("not-fields", "the content is not a list of fields");
  }
  return fields;
}

/** The plaintext of an array of `{key, value, type, ...}`. */
export function writeFields(fields) {
  return utf8(JSON.stringify(fields), "a field");
}
