// The public key of a private scalar on P-256. By hand, because WebCrypto has no such operation.
//
// BigInt is not constant-time. It runs once per page, on the machine of the key's owner.

const P = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const G = [
  0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296n,
  0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5n,
];
const INFINITY = [1n, 1n, 0n]; // a point is [X, Y, Z], and stands for (X / Z^2, Y / Z^3)

/** (wide mod (n - 1)) + 1, big-endian in 32 bytes. */
export function scalarFrom(wide) {
  return toBytes((toNumber(wide) % (N - 1n)) + 1n);
}

/** The uncompressed point (0x04, X, Y) of scalar (32 bytes, 1 to n - 1) times the generator. */
export function publicPoint(scalar) {
  const number = toNumber(scalar);
  if (number < 1n || number >= N) throw new RangeError("a scalar is 1 to n - 1");
  let sum = INFINITY;
  for (let bit = 255n; bit >= 0n; bit -= 1n) {
    sum = doubled(sum);
    if ((number >> bit) & 1n) sum = plusGenerator(sum);
  }
  const inverse = power(sum[2], P - 2n);
  const square = mod(inverse * inverse);
  const point = new Uint8Array(65);
  point[0] = 0x04;
  point.set(toBytes(mod(sum[0] * square)), 1);
  point.set(toBytes(mod(sum[1] * square * inverse)), 33);
  return point;
}

function doubled([x, y, z]) {
  if (z === 0n) return INFINITY;
  const y2 = mod(y * y);
  const s = mod(4n * x * y2);
  const z2 = mod(z * z);
  const m = mod(3n * (x - z2) * (x + z2)); // a = -3
  const x3 = mod(m * m - 2n * s);
  return [x3, mod(m * (s - x3) - 8n * y2 * y2), mod(2n * y * z)];
}

function plusGenerator([x, y, z]) {
  if (z === 0n) return [...G, 1n];
  const z2 = mod(z * z);
  const h = mod(G[0] * z2 - x);
  const r = mod(G[1] * z2 * z - y);
  if (h === 0n) return r === 0n ? doubled([x, y, z]) : INFINITY;
  const h2 = mod(h * h);
  const h3 = mod(h2 * h);
  const u = mod(x * h2);
  const x3 = mod(r * r - h3 - 2n * u);
  return [x3, mod(r * (u - x3) - y * h3), mod(z * h)];
}

function mod(number) {
  const rest = number % P;
  return rest < 0n ? rest + P : rest;
}

function power(base, exponent) {
  let result = 1n;
  for (let bit = 255n; bit >= 0n; bit -= 1n) {
    result = mod(result * result);
    if ((exponent >> bit) & 1n) result = mod(result * base);
  }
  return result;
}

function toNumber(bytes) {
  return BigInt("0x" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""));
}

function toBytes(number) {
  const hex = number.toString(16).padStart(64, "0");
  return Uint8Array.from({ length: 32 }, (_, at) => parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}
