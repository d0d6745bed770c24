// A QR code's codewords, by ISO/IEC 18004:2015: a text in byte mode, its version and level, its check codewords.

// M corrects 15 % and is taken up to version 15; beyond that larger modules help a camera more than M does, and L (7 %)
// needs fewer of them. L begins at 13, the first that holds more than 15-M. By version: check codewords of a block, blocks.
const LEVELS = [
  {
    indicator: 0b00, // M
    first: 1,
    check: [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24],
    blocks: [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10],
  },
  {
    indicator: 0b01, // L
    first: 13,
    check: [26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, ...Array(14).fill(30)],
    blocks: [4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25],
  },
];

/** A text's `{version, indicator, codewords}`, the indicator being the level's; null where no version holds it. */
export function write(text) {
  // Half a surrogate pair is no text: TextEncoder would put another character for it, and the code would say that.
  if (/\p{Surrogate}/u.test(text)) return null;
  const bytes = new TextEncoder().encode(text);
  const plan = planFor(bytes);
  if (!plan) return null;
  const { version, indicator } = plan;
  return { version, indicator, codewords: interleaved(dataCodewords(bytes, plan), plan) };
}

// --- What a version holds (6.3, table 1) ---

/** Modules a side. */
export const sizeOf = (version) => 17 + 4 * version;

/** Alignment patterns in the longest row of them. */
export const alignmentsASide = (version) => (version === 1 ? 0 : Math.floor(version / 7) + 2);

// What finders, timing, format, version and alignment leave of a symbol; alignments on the timing lines share 5 with them.
function freeModules(version) {
  const size = sizeOf(version);
  const n = alignmentsASide(version);
  const alignment = n ? 25 * (n * n - 3) - 2 * 5 * (n - 2) : 0;
  return size * size - 3 * 64 - 2 * (size - 16) - 31 - (version < 7 ? 0 : 36) - alignment;
}

// --- Data codewords (7.4) ---

// Bytes are Latin-1 until an ECI says otherwise (26: UTF-8). ASCII is the same in both: old readers get it without.
function header(bytes, version) {
  const charset = bytes.some((byte) => byte > 0x7f) ? [[0b0111, 4], [26, 8]] : [];
  return [...charset, [0b0100, 4], [bytes.length, version < 10 ? 8 : 16]];
}

function planFor(bytes) {
  for (const { indicator, first, check, blocks } of LEVELS) {
    for (const [at, checkLength] of check.entries()) {
      const version = first + at;
      const room = (freeModules(version) >> 3) - checkLength * blocks[at];
      const bits = header(bytes, version).reduce((sum, [, length]) => sum + length, bytes.length * 8);
      if (bits <= room * 8) return { version, indicator, room, checkLength, blocks: blocks[at] };
    }
  }
  return null;
}

function dataCodewords(bytes, { version, room }) {
  const bits = [];
  const put = (value, length) => {
    for (let at = length - 1; at >= 0; at -= 1) bits.push((value >> at) & 1);
  };
  for (const [value, length] of header(bytes, version)) put(value, length);
  for (const byte of bytes) put(byte, 8);
  put(0, Math.min(4, room * 8 - bits.length)); // the terminator, as far as there is room
  put(0, -bits.length & 7);
  const codewords = new Uint8Array(room);
  bits.forEach((bit, at) => (codewords[at >> 3] |= bit << (7 - (at & 7))));
  for (let at = bits.length / 8, pad = 0xec; at < room; at += 1, pad ^= 0xec ^ 0x11) codewords[at] = pad;
  return codewords;
}

// --- Check codewords: Reed-Solomon over GF(256) with x^8 + x^4 + x^3 + x^2 + 1 (7.5) ---

const POWER = new Uint8Array(510);
const LOG = new Uint8Array(256);
for (let at = 0, value = 1; at < 255; at += 1, value = (value << 1) ^ (value & 0x80 ? 0x11d : 0)) {
  POWER[at] = POWER[at + 255] = value;
  LOG[value] = at;
}
const times = (a, b) => (a && b ? POWER[LOG[a] + LOG[b]] : 0);

// The product of (x - 2^0), (x - 2^1), ...: its coefficients from the highest, the leading 1 left out.
function generator(degree) {
  let product = [1];
  for (let root = 0; root < degree; root += 1) {
    product = [...product, 0].map((value, at) => value ^ (at ? times(product[at - 1], POWER[root]) : 0));
  }
  return product.slice(1);
}

function remainder(data, divisor) {
  const rest = new Uint8Array(divisor.length + 1); // the last stays 0: it is what moves in
  for (const byte of data) {
    const factor = byte ^ rest[0];
    rest.copyWithin(0, 1);
    divisor.forEach((value, at) => (rest[at] ^= times(value, factor)));
  }
  return rest.subarray(0, -1);
}

// First bytes of all blocks, second bytes, ...: a scratch across the symbol hurts each block a little. Check bytes follow.
function interleaved(data, { blocks, checkLength }) {
  const short = Math.floor(data.length / blocks);
  const shorts = blocks - (data.length % blocks); // the blocks behind them hold one byte more
  const starts = Array.from({ length: blocks + 1 }, (_, at) => at * short + Math.max(0, at - shorts));
  const parts = starts.slice(0, -1).map((start, at) => data.subarray(start, starts[at + 1]));
  const divisor = generator(checkLength);
  const checks = parts.map((part) => remainder(part, divisor));
  const inTurn = (rows) => Array.from(rows.at(-1), (_, at) => rows.filter((row) => at < row.length).map((row) => row[at]));
  return [...inTurn(parts).flat(), ...inTurn(checks).flat()];
}
