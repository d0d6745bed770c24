// A third reading of the wire format, with WebCrypto as a browser has it. Jobs come as JSON on standard
// input, one array; the answers go out in the same order. Nothing here is shared with the Python code.
import { readFileSync } from "node:fs";

const { subtle } = globalThis.crypto;
const utf8 = new TextEncoder();
const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const bytes = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");
const base64 = (data) => Buffer.from(data).toString("base64");
const unbase64 = (data) => new Uint8Array(Buffer.from(data, "base64"));
const base64url = (data) => Buffer.from(data).toString("base64url");
const random = (size) => globalThis.crypto.getRandomValues(new Uint8Array(size));
const joined = (...parts) => new Uint8Array(Buffer.concat(parts));

async function hkdf(ikm, salt, info, size = 32) {
  const key = await subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
  const parameters = { name: "HKDF", hash: "SHA-256", salt, info: utf8.encode(info) };
  return new Uint8Array(await subtle.deriveBits(parameters, key, size * 8));
}

async function aead(verb, key, iv, data) {
  const imported = await subtle.importKey("raw", key, "AES-GCM", false, [verb]);
  return new Uint8Array(await subtle[verb]({ name: "AES-GCM", iv, tagLength: 128 }, imported, data));
}

const info = (passcode) => (passcode === null ? "content" : `content|${passcode}`);

async function boxKey(privateKey, publicPoint, salt, tag) {
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const other = await subtle.importKey("raw", publicPoint, curve, false, []);
  const shared = await subtle.deriveBits({ name: "ECDH", public: other }, privateKey, 256);
  return hkdf(new Uint8Array(shared), salt, `${tag}-request-submission`);
}

const verbs = {
  async seal({ content_key, fields, passcode }) {
    const [salt, iv] = [random(16), random(12)];
    const key = await hkdf(bytes(content_key), salt, info(passcode));
    return base64(joined(salt, iv, await aead("encrypt", key, iv, utf8.encode(JSON.stringify(fields)))));
  },
  async open({ content_key, data, passcode }) {
    const raw = unbase64(data);
    const key = await hkdf(bytes(content_key), raw.slice(0, 16), info(passcode));
    return text.decode(await aead("decrypt", key, raw.slice(16, 28), raw.slice(28)));
  },
  async tokens({ content_key, passcode }) {
    const none = new Uint8Array(0);
    return [
      base64url(await hkdf(bytes(content_key), none, "access")),
      passcode === null ? null : base64url(await hkdf(utf8.encode(passcode), none, "verify")),
      "1" + base64url(bytes(content_key)),
    ];
  },
  async box({ public_key, payload, tag }) {
    const pair = await subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
    const [salt, iv] = [random(16), random(12)];
    const key = await boxKey(pair.privateKey, bytes(public_key), salt, tag);
    const point = new Uint8Array(await subtle.exportKey("raw", pair.publicKey));
    return base64(joined(Uint8Array.of(1), point, salt, iv, await aead("encrypt", key, iv, bytes(payload))));
  },
  async unbox({ seed, public_key, blob, tag }) {
    const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const wide = await hkdf(bytes(seed), new Uint8Array(0), `${tag}-ecdh-p256-scalar`, 48);
    const scalar = ((BigInt("0x" + hex(wide)) % (n - 1n)) + 1n).toString(16).padStart(64, "0");
    const point = bytes(public_key); // WebCrypto wants the public half too, and refuses one that does not match
    const jwk = {
      kty: "EC", crv: "P-256", d: base64url(bytes(scalar)),
      x: base64url(point.slice(1, 33)), y: base64url(point.slice(33)),
    };
    const mine = await subtle.importKey("jwk", jwk, { name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);
    const raw = unbase64(blob);
    if (raw[0] !== 1) throw new Error("version");
    const key = await boxKey(mine, raw.slice(1, 66), raw.slice(66, 82), tag);
    return hex(await aead("decrypt", key, raw.slice(82, 94), raw.slice(94)));
  },
  async stringify({ text: source }) {
    return JSON.stringify(JSON.parse(source));
  },
};

const answers = [];
for (const job of JSON.parse(readFileSync(0, "utf8"))) answers.push(await verbs[job.verb](job));
process.stdout.write(JSON.stringify(answers));
