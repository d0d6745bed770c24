// How long an opened share stays to be seen.

import { announce } from "./base.js";

const WARN_SECONDS = 10;

/** Count `limit` seconds down in `clock`, then call `done` once; ends by itself when the clock leaves the page. */
export function startTimer(limit, clock, done) {
  const began = [Date.now(), performance.now()];
  let warned = limit <= 2 * WARN_SECONDS;
  const tick = () => {
    if (!clock.isConnected) return clearInterval(beat);
    // One clock stands still while a machine sleeps, the other can be set back: whichever is further counts.
    const past = Math.max(Date.now() - began[0], performance.now() - began[1]) / 1000;
    const left = Math.max(0, Math.ceil(limit - past));
    clock.textContent = readable(left);
    if (!warned && left <= WARN_SECONDS) {
      warned = true;
      announce(`Hidden in ${left} seconds`);
    }
    if (past >= limit) {
      clearInterval(beat);
      done();
    }
    return left;
  };
  // A beat instead of one long wait: that would be cut short beyond 24 days.
  const beat = setInterval(tick, 250);
  tick();
}

function readable(left) {
  if (left < 60) return `${left} s`;
  const [hours, minutes, rest] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
