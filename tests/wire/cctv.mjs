// Reads every vector of a folder (tests/wire/cctv, or the one given) and prints one line of JSON for each: the file,
// the verdict and what came out. Ends with 1 where a vector did not do what its header says.
//
//     node tests/wire/cctv.mjs [FOLDER]
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as wire from "./webcrypto.mjs";
import { readFields, writeFields } from "./webcrypto_fields.mjs";

const { hex, text } = wire;

const kinds = {
  base64: (_, body) => ({ bytes: hex(wire.unbase64(text(body))) }),
  base64url: (_, body) => ({ bytes: hex(wire.unbase64url(text(body))) }),
  fragment: (_, body) => ({ "content key": hex(wire.readFragment(text(body))) }),
  envelope: async (is, body) => ({
    plaintext: text(await wire.openEnvelope(is.bytes("content key"), text(body), is.text("passcode"))),
  }),
  "seal envelope": async (is, body) => ({
    data: await wire.sealEnvelope(
      is.bytes("content key"), body, is.text("passcode"), is.bytes("salt"), is.bytes("iv"),
    ),
  }),
  box: async (is, body) => ({ payload: hex(await wire.openBox(is.bytes("seed"), text(body), is.text("tag"))) }),
  "seal box": async (is, body) => ({
    data: await wire.sealBox(
      is.bytes("public key"), body, is.text("tag"), is.bytes("ephemeral"), is.bytes("salt"), is.bytes("iv"),
    ),
  }),
  fields: (_, body) => ({ fields: readFields(body) }),
  "write fields": (_, body) => ({ plaintext: writeFields(JSON.parse(text(body))) }),
  tokens: async (is) => ({
    "access token": await wire.accessToken(is.bytes("content key")),
    ...(is.has("passcode") && { verifier: await wire.passcodeVerifier(is.text("passcode")) }),
  }),
  keys: async (is) => {
    const seed = is.has("seed") ? is.bytes("seed") : await wire.custodySeed(is.text("custody secret"));
    const pair = await wire.keyPair(seed, is.text("tag"));
    return { scalar: hex(pair.scalar), "public key": hex(pair.publicKey) };
  },
};
const JSON_HEADERS = new Set(["passcode", "tag", "custody secret", "plaintext", "fields"]);

function parsed(raw) {
  const end = raw.indexOf("\n\n");
  const headers = new Map();
  for (const line of text(raw.subarray(0, end)).split("\n")) {
    const [, name, value] = /^([a-z0-9 ]+): (.*)$/s.exec(line);
    if (headers.has(name)) throw new Error(`the header ${name} stands twice`);
    headers.set(name, value);
  }
  const is = {
    has: (name) => headers.has(name),
    bytes: (name) => wire.unhex(headers.get(name)),
    text: (name) => (headers.has(name) ? JSON.parse(headers.get(name)) : undefined),
  };
  return { headers, is, body: new Uint8Array(raw.subarray(end + 2)) };
}

async function judged({ headers, is, body }) {
  try {
    return ["success", await kinds[headers.get("kind")](is, body)];
  } catch (error) {
    if (error instanceof wire.Refusal) return [error.message, {}];
    throw error;
  }
}

const folder = process.argv[2] ?? fileURLToPath(new URL("cctv", import.meta.url));
for (const file of readdirSync(folder).filter((name) => !name.includes(".")).sort()) {
  const vector = parsed(readFileSync(`${folder}/${file}`));
  const [verdict, got] = await judged(vector);
  console.log(JSON.stringify({ file, verdict, got }));
  const agrees = ([name, value]) =>
    JSON.stringify(value) === JSON.stringify(JSON_HEADERS.has(name) ? vector.is.text(name) : vector.headers.get(name));
  if (verdict !== vector.headers.get("expect") || !Object.entries(got).every(agrees)) process.exitCode = 1;
}
