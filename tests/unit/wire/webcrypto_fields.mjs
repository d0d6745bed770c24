// The plaintext of the format: a JSON parser that takes RFC 8259 and nothing else, and the array of fields in it.
// JSON.parse would keep the last of two members of one name and say nothing of depth or of half surrogate pairs.
import { Refusal, text } from "./webcrypto.mjs";

const LEVELS = 100;
const refuse = (reason) => {
  throw new Refusal("field", reason);
};
const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

class Parser {
  constructor(source) {
    this.source = source;
    this.at = 0;
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.source);
    if (found) this.at = pattern.lastIndex;
    return found?.[0];
  }

  space() {
    this.take(/[ \t\n\r]*/y);
  }

  document() {
    const value = this.value(0);
    return this.at === this.source.length ? value : refuse("not-json");
  }

  value(level) {
    this.space();
    const first = this.source[this.at];
    const value = first === "[" || first === "{" ? this.nested(first, level + 1) : this.plain(first);
    this.space();
    return value;
  }

  plain(first) {
    if (first === '"') return this.string();
    if (this.take(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y)) return 0; // no number matters to us
    if (this.take(/NaN|-?Infinity/y)) refuse("not-finite");
    const word = this.take(/true|false|null/y) ?? refuse("not-json");
    return { true: true, false: false, null: null }[word];
  }

  nested(open, level) {
    if (level > LEVELS) refuse("too-deep");
    const [array, members] = [[], new Map()];
    const close = open === "[" ? "]" : "}";
    this.at += 1;
    this.space();
    if (this.source[this.at] !== close) {
      do {
        this.at += array.length || members.size ? 1 : 0; // the comma
        if (open === "[") array.push(this.value(level));
        else this.member(members, level);
      } while (this.source[this.at] === ",");
    }
    if (this.source[this.at] !== close) refuse("not-json");
    this.at += 1;
    return open === "[" ? array : members;
  }

  member(members, level) {
    this.space();
    const name = this.string();
    this.space();
    if (!this.take(/:/y)) refuse("not-json");
    const value = this.value(level);
    if (members.has(name)) refuse("duplicate-member");
    members.set(name, value);
  }

  string() {
    const raw = this.take(/"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y) ?? refuse("not-json");
    const value = raw
      .slice(1, -1)
      .replace(/\\(?:u(....)|(.))/g, (_, code, one) => (code ? String.fromCharCode(parseInt(code, 16)) : ESCAPES[one]));
    return value.isWellFormed() ? value : refuse("lone-surrogate");
  }
}

/** The fields of a plaintext, each as [key, value, type]. */
export function readFields(bytes) {
  let source;
  try {
    source = text(bytes);
  } catch {
    refuse("not-utf8");
  }
  const array = new Parser(source).document();
  if (!Array.isArray(array)) refuse("not-an-array");
  return array.map((item) => {
    if (!(item instanceof Map)) refuse("not-an-object");
    return ["key", "value", "type"].map((name) => {
      if (!item.has(name)) {
        const wrong = name === "key" && ["label", "name", "title"].some((other) => item.has(other));
        refuse(wrong ? "label-not-key" : `missing-${name}`);
      }
      return typeof item.get(name) === "string" ? item.get(name) : refuse(`bad-${name}`);
    });
  });
}

const HINTS = { selectedProgrammingLanguage: "language", filename: "filename" };

function writable(value, level) {
  if (typeof value === "string") return value.isWellFormed() || refuse("lone-surrogate");
  if (typeof value === "number") return Number.isFinite(value) || refuse("not-finite");
  if (typeof value !== "object" || value === null) return true;
  if (level >= LEVELS) refuse("too-deep");
  return Object.entries(value).every((pair) => pair.every((part) => writable(part, level + 1)));
}

/** The JSON text of an array of fields, members in the format's order. */
export function writeFields(array) {
  const ordered = array.map(({ key, value, type, selectedProgrammingLanguage, filename, ...extra }) => {
    for (const [name, member] of Object.entries({ key, value, type }))
      if (typeof member !== "string") refuse(`bad-${name}`);
    const hints = Object.entries({ selectedProgrammingLanguage, filename }).filter(([, hint]) => hint !== undefined);
    for (const [name, hint] of hints) if (typeof hint !== "string") refuse(`bad-${HINTS[name]}`);
    return { key, value, type, ...Object.fromEntries(hints), ...extra };
  });
  writable(ordered, 0);
  return JSON.stringify(ordered);
}
