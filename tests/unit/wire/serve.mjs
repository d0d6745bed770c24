// WebCrypto's side of tests/unit/wire/node.py: a line is an array of jobs, the answering line their results in order.
// A refusal is {"refused": "part reason"}; whatever else goes wrong ends the program.
import { createInterface } from "node:readline";
import * as wire from "./webcrypto.mjs";
import { readFields, writeFields } from "./webcrypto_fields.mjs";

const { hex, unhex, utf8 } = wire;
const given = (passcode) => passcode ?? undefined;

const verbs = {
  async "seal envelope"({ content_key, passcode, fields, salt, iv }) {
    const plaintext = utf8(writeFields(JSON.parse(fields)));
    return wire.sealEnvelope(unhex(content_key), plaintext, given(passcode), unhex(salt), unhex(iv));
  },
  async "open envelope"({ content_key, passcode, data }) {
    const plaintext = await wire.openEnvelope(unhex(content_key), data, given(passcode));
    readFields(plaintext);
    return hex(plaintext);
  },
  async "seal box"({ public_key, payload, tag, ephemeral, salt, iv }) {
    return wire.sealBox(unhex(public_key), unhex(payload), tag, unhex(ephemeral), unhex(salt), unhex(iv));
  },
  async "open box"({ seed, tag, data }) {
    return hex(await wire.openBox(unhex(seed), data, tag));
  },
  async tokens({ content_key, passcode }) {
    const key = unhex(content_key);
    const verifier = passcode === null ? null : await wire.passcodeVerifier(passcode);
    return [await wire.accessToken(key), verifier, wire.fragment(key)];
  },
  async "public key"({ seed, tag }) {
    return hex((await wire.keyPair(unhex(seed), tag)).publicKey);
  },
  async stringify({ text }) {
    return JSON.stringify(JSON.parse(text));
  },
};

async function answer(job) {
  try {
    return await verbs[job.verb](job);
  } catch (error) {
    if (error instanceof wire.Refusal) return { refused: error.message };
    throw error;
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await Promise.all(JSON.parse(line).map(answer)))}\n`);
}
