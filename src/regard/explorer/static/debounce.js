/** Work that is asked for faster than it is done: one at a time, and then only the newest. */

/**
 * Give a function that hands its input to `work`; while that is under way, only the latest input waits.
 * @template T
 * @param {(input: T) => Promise<void>} work
 */
export function newest(work) {
  let busy = false;
  let waiting = /** @type {{input: T}|null} */ (null);
  /** @param {T} input */
  async function start(input) {
    busy = true;
    try {
      await work(input);
    } finally {
      busy = false;
      if (waiting) {
        const { input: next } = waiting;
        waiting = null;
        start(next);
      }
    }
  }
  return (/** @type {T} */ input) => {
    if (busy) waiting = { input };
    else start(input);
  };
}

/**
 * Give a function that waits for a pause before it calls `act`, and one that calls it at once.
 * @template {unknown[]} Input
 * @param {(...input: Input) => void} act
 */
export function paused(act, milliseconds = 350) {
  let timer = 0;
  const now = (/** @type {Input} */ ...input) => {
    clearTimeout(timer);
    act(...input);
  };
  const later = (/** @type {Input} */ ...input) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...input), milliseconds);
  };
  return { later, now, stop: () => clearTimeout(timer) };
}
