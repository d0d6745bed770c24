// Reads every vector of a folder (tests/unit/wire/vectors, or the one given) and prints one line of JSON for each: its name,
// the verdict and what came out. Ends with 1 where a vector did not do what it says.
//
//     node tests/unit/wire/vectors.mjs [FOLDER]
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as wire from "./webcrypto.mjs";
import { readFields, writeFields } from "./webcrypto_fields.mjs";

const { hex, text, unhex, utf8 } = wire;

// Each is given the inputs by name.
const kinds = {
  base64: (is) => ({ bytes: hex(wire.unbase64(is.text)) }),
  base64url: (is) => ({ bytes: hex(wire.unbase64url(is.text)) }),
  fragment: (is) => ({ "content key": hex(wire.readFragment(is.fragment)) }),
  envelope: async (is) => ({
    plaintext: text(await wire.openEnvelope(unhex(is["content key"]), is.data, is.passcode)),
  }),
  "seal envelope": async (is) => ({
    data: await wire.sealEnvelope(
      unhex(is["content key"]), utf8(is.plaintext), is.passcode, unhex(is.salt), unhex(is.iv),
    ),
  }),
  box: async (is) => ({ payload: hex(await wire.openBox(unhex(is.seed), is.data, is.tag)) }),
  "seal box": async (is) => ({
    data: await wire.sealBox(
      unhex(is["public key"]), unhex(is.payload), is.tag, unhex(is.ephemeral), unhex(is.salt), unhex(is.iv),
    ),
  }),
  fields: (is) => ({ fields: readFields("bytes" in is ? unhex(is.bytes) : utf8(is.plaintext)) }),
  "write fields": (is) => ({ plaintext: writeFields(JSON.parse(is.members)) }),
  tokens: async (is) => ({
    "access token": await wire.accessToken(unhex(is["content key"])),
    ...("passcode" in is && { verifier: await wire.passcodeVerifier(is.passcode) }),
  }),
  keys: async (is) => {
    const seed = "seed" in is ? unhex(is.seed) : await wire.custodySeed(is["custody secret"]);
    const pair = await wire.keyPair(seed, is.tag);
    return { scalar: hex(pair.scalar), "public key": hex(pair.publicKey) };
  },
};

async function judged({ kind, given }) {
  try {
    return ["success", await kinds[kind](given)];
  } catch (error) {
    if (error instanceof wire.Refusal) return [error.message, {}];
    throw error;
  }
}

const folder = process.argv[2] ?? fileURLToPath(new URL("vectors", import.meta.url));
for (const file of readdirSync(folder).filter((name) => name.endsWith(".jsonl")).sort()) {
  for (const line of readFileSync(`${folder}/${file}`, "utf8").trimEnd().split("\n")) {
    const { name, expect, result = {}, ...vector } = JSON.parse(line);
    const [verdict, got] = await judged(vector);
    console.log(JSON.stringify({ name, verdict, got }));
    const members = new Set([...Object.keys(got), ...Object.keys(result)]);
    const agrees = (member) => JSON.stringify(got[member]) === JSON.stringify(result[member]);
    if (verdict !== expect || ![...members].every(agrees)) process.exitCode = 1;
  }
}
