// A field's QR code for a camera: black on white whatever the page's colours, drawn by the DOM alone.

import { drawn, make } from "./base.js";
import { qrCode } from "./qr.js";

/** How many characters a field of type `qr` may hold to be drawn. */
export const QR_LIMIT = 2300;

const QUIET = 4; // modules of white around a code, by the standard
const WIDTH = 500; // what a field has room for on a wide screen, in CSS pixels
const LARGEST = 6; // pixels a module

// A sender may fill a page with codes: each is drawn when it comes near the window. Weak, for what is hidden must be gone.
const waiting = new WeakMap();
const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      target.replaceWith(waiting.get(target)());
    }
  },
  { rootMargin: "100% 0px" },
);

/** A place for the code of a value, or for why there is none; null where there is nothing to draw. */
export function qrPicture(value, label) {
  if (value === "") return null;
  const place = make("div", { class: "qr-place" });
  waiting.set(place, () => {
    const code = Array.from(value).length > QR_LIMIT ? null : qrCode(value);
    return code ? picture(code, label) : make("p", { class: "hint" }, whyNot(value));
  });
  near.observe(place);
  return place;
}

function whyNot(value) {
  return /\p{Surrogate}/u.test(value) ? "This is not valid text: no QR code can hold it." : "Too long for a QR code.";
}

function picture({ size, dark }, label) {
  const whole = size + 2 * QUIET;
  // Whole pixels where there is room: no module is wider than its neighbour.
  const width = whole * Math.min(LARGEST, Math.floor(WIDTH / whole));
  const attributes = {
    class: "qr", role: "img", "aria-label": `QR code: ${label}`, "shape-rendering": "crispEdges",
    viewBox: `${-QUIET} ${-QUIET} ${whole} ${whole}`, width, height: width,
  };
  return drawn(
    "svg",
    attributes,
    drawn("path", { fill: "#fff", d: `M${-QUIET} ${-QUIET}h${whole}v${whole}h${-whole}z` }),
    drawn("path", { fill: "#000", d: Array.from({ length: size }, (_, y) => line(dark.subarray(y * size, (y + 1) * size), y)).join("") }),
  );
}

// The dark runs of one row as parts of a path.
function line(row, y) {
  return Array.from(row.join("").matchAll(/1+/g), ({ index, 0: run }) => `M${index} ${y}h${run.length}v1h${-run.length}z`).join("");
}
