/** Rate limiting: run only the latest of several tasks, or wait for a pause in the input. */

/**
 * Return a function that runs a task, one at a time; while one is running, only the latest input is kept for the next.
 * @template T
 * @param {(input: T) => Promise<void>} task
 */
export function latestOnly(task) {
  let isRunning = false;
  let pending = /** @type {{input: T}|null} */ (null);
  /** @param {T} input */
  async function run(input) {
    isRunning = true;
    try {
      await task(input);
    } finally {
      isRunning = false;
      if (pending) {
        const { input: next } = pending;
        pending = null;
        run(next);
      }
    }
  }
  return (/** @type {T} */ input) => {
    if (isRunning) pending = { input };
    else run(input);
  };
}

/**
 * Debounce a callback: `schedule` calls it after a pause, `runNow` at once and instead of a scheduled call.
 * @template {unknown[]} Input
 * @param {(...input: Input) => void} callback
 */
export function debounce(callback, milliseconds = 350) {
  let timer = 0;
  const runNow = (/** @type {Input} */ ...input) => {
    clearTimeout(timer);
    callback(...input);
  };
  const schedule = (/** @type {Input} */ ...input) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...input), milliseconds);
  };
  return { schedule, runNow };
}
