// Text as a QR code (ISO/IEC 18004:2015): the symbol. By hand, because browsers have no QR encoder and the page loads
// no third-party code.

import { alignmentsASide, sizeOf, write } from "./qr_codewords.js";

/** The code of a text: `{size, dark}`, `size` modules a side, `dark` row by row with 1 for dark; null where none holds it. */
export function qrCode(text) {
  const { size, masks } = candidates(text) ?? {};
  if (!masks) return null;
  const penalties = masks.map((dark) => penalty(dark, size));
  return { size, dark: masks[penalties.indexOf(Math.min(...penalties))] };
}

/** The same text under each of the eight masks, by number: `{size, masks}`. */
export function candidates(text) {
  const written = write(text);
  if (!written) return null;
  const symbol = functionPatterns(written.version);
  placeCodewords(symbol, written.codewords);
  return { size: symbol.size, masks: MASKS.map((flips, number) => masked(symbol, flips, (written.indicator << 3) | number)) };
}

// --- Function patterns (6.3) ---

// Rows and columns of the alignments' middles (annex E): at one distance from the far end, what is left over beside the 6.
function alignmentMiddles(version) {
  const n = alignmentsASide(version);
  const last = sizeOf(version) - 7;
  const distance = version === 32 ? 26 : 2 * Math.ceil((last - 6) / (n - 1) / 2);
  return Array.from({ length: n }, (_, at) => (at ? last - (n - 1 - at) * distance : 6));
}

// A number with its BCH check bits behind it.
function withCheck(value, divisor) {
  const degree = 31 - Math.clz32(divisor);
  let rest = value << degree;
  while (rest >> degree) rest ^= divisor << (Math.clz32(divisor) - Math.clz32(rest));
  return (value << degree) | rest;
}

function functionPatterns(version) {
  const size = sizeOf(version);
  const symbol = { size, dark: new Uint8Array(size * size), fixed: new Uint8Array(size * size) };
  const put = (x, y, dark) => {
    symbol.dark[y * size + x] = dark;
    symbol.fixed[y * size + x] = 1;
  };
  const rings = (middleX, middleY, radius, light) => {
    for (let y = Math.max(0, middleY - radius); y <= Math.min(size - 1, middleY + radius); y += 1) {
      for (let x = Math.max(0, middleX - radius); x <= Math.min(size - 1, middleX + radius); x += 1) {
        put(x, y, light.includes(Math.max(Math.abs(x - middleX), Math.abs(y - middleY))) ? 0 : 1);
      }
    }
  };
  for (let at = 0; at < size; at += 1) [[at, 6], [6, at]].forEach(([x, y]) => put(x, y, 1 - (at & 1)));
  const middles = alignmentMiddles(version);
  // Three corners of their grid are the finders'.
  const corners = [[6, 6], [size - 7, 6], [6, size - 7]].map(String);
  for (const y of middles) {
    for (const x of middles) if (!corners.includes(String([x, y]))) rings(x, y, 2, [1]);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) rings(x, y, 4, [2, 4]);
  formatPlaces(size).flat().forEach(([x, y]) => put(x, y, 0)); // kept free: they tell the mask
  put(8, size - 8, 1);
  for (let at = 0, bits = withCheck(version, 0x1f25); version >= 7 && at < 18; at += 1) {
    const [near, far] = [Math.floor(at / 3), size - 11 + (at % 3)];
    [[near, far], [far, near]].forEach(([x, y]) => put(x, y, (bits >> at) & 1));
  }
  return symbol;
}

// Where the 15 bits of the format stand, twice, from the lowest: round the first finder, and at the two others.
function formatPlaces(size) {
  const around = (at) => (at < 6 ? at : at + 1); // steps over the timing lines
  return Array.from({ length: 15 }, (_, at) =>
    at < 8 ? [[8, around(at)], [size - 1 - at, 8]] : [[around(14 - at), 8], [8, size - 15 + at]],
  );
}

// Two columns at a time from the right, up and down in turn; the timing column is stepped over (7.7.3).
function placeCodewords({ size, dark, fixed }, codewords) {
  let next = 0;
  let up = true;
  for (let right = size - 1; right > 0; right -= right === 8 ? 3 : 2, up = !up) {
    for (let step = 0; step < 2 * size; step += 1) {
      const row = up ? size - 1 - (step >> 1) : step >> 1;
      const at = row * size + right - (step & 1);
      if (fixed[at]) continue;
      dark[at] = (codewords[next >> 3] >> (7 - (next & 7))) & 1; // behind the last codeword: 0
      next += 1;
    }
  }
}

// --- Masks (7.8) ---

const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => ((y >> 1) + Math.floor(x / 3)) % 2 === 0,
  (x, y) => (x * y) % 6 === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

function masked({ size, dark, fixed }, flips, format) {
  const result = dark.map((bit, at) => (fixed[at] ? bit : bit ^ flips(at % size, Math.floor(at / size))));
  const bits = withCheck(format, 0x537) ^ 0x5412;
  formatPlaces(size).forEach((both, at) => both.forEach(([x, y]) => (result[y * size + x] = (bits >> at) & 1)));
  return result;
}

/** What tires a reader: runs of five and more, what looks like a finder, squares of one colour, too much of one colour. */
export function penalty(dark, size) {
  let points = 0;
  for (const [along, across] of [[1, size], [size, 1]]) {
    for (let line = 0; line < size; line += 1) {
      // A finder is 1:1:3:1:1 with four light modules before or behind it, of the quiet zone, too.
      for (let at = 0, run = 0, last = -1, window = 0; at < size + 4; at += 1) {
        const bit = at < size ? dark[line * across + at * along] : 0;
        window = ((window << 1) | bit) & 0x7fff;
        if (((window >> 4) & 0x7f) === 0b1011101 && (window >> 11 === 0 || (window & 0xf) === 0)) points += 40;
        if (at >= size) continue;
        run = bit === last ? run + 1 : 1;
        last = bit;
        points += run === 5 ? 3 : run > 5 ? 1 : 0;
      }
    }
  }
  for (let at = 0; at < size * (size - 1); at += 1) {
    if (at % size === size - 1) continue;
    const sum = dark[at] + dark[at + 1] + dark[at + size] + dark[at + size + 1];
    if (sum === 0 || sum === 4) points += 3;
  }
  const share = dark.reduce((sum, bit) => sum + bit, 0) / dark.length;
  return points + 10 * Math.floor(Math.abs(share - 0.5) * 20);
}
