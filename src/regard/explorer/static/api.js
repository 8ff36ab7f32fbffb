/** What the server is asked: JSON there and back, and a sentence when it cannot answer. */

const TRIES = 8; // times a busy server is asked again
const REMEMBERED = 40; // answers kept, so that another language or a step back asks nothing

/**
 * @typedef {{body?: unknown, signal?: AbortSignal, keep?: boolean, busy?: (seconds: number) => void}} Wishes
 * @typedef {(path: string, wishes?: Wishes) => Promise<any>} Ask
 * The answer is what the description of the API says of that path; who asks knows it.
 * @typedef {(path: string, request: RequestInit) => Promise<Response>} Fetch
 * @typedef {(seconds: number, signal?: AbortSignal) => Promise<unknown>} Sleep
 */

/** Why there is no answer: `kind` is "busy", "unreachable" or "refused", which has a sentence of its own. */
export class Problem extends Error {
  /** @param {"busy"|"unreachable"|"refused"} kind */
  constructor(kind, sentence = String(kind)) {
    super(sentence);
    this.kind = kind;
  }
}

/** @type {{fetch: Fetch, sleep: Sleep}} */
const usual = {
  fetch: (path, request) => globalThis.fetch(path, request),
  sleep: (seconds, signal) => wait(seconds, signal),
};

/**
 * Make the function that asks: `ask(path, {body, signal, keep, busy})`. A `body` is posted as JSON, or as it
 * is if it is a Blob; answers are remembered when `keep` says so; `busy(seconds)` is told before each pause.
 * @returns {Ask}
 */
export function asker({ fetch, sleep } = usual) {
  const known = /** @type {Map<string, unknown>} */ (new Map());
  return async function ask(path, { body, signal, keep = false, busy = () => {} } = {}) {
    const name = keep ? JSON.stringify([path, body]) : "";
    if (known.has(name)) return known.get(name);
    for (let attempt = 1; ; attempt++) {
      const response = await sent(fetch, path, body, signal);
      if (response.status === 503 && attempt < TRIES) {
        const seconds = Math.min(Math.max(Number(response.headers.get("Retry-After")) || 1, 1), 30);
        busy(seconds);
        await sleep(seconds, signal);
        continue;
      }
      const answer = await read(response, signal);
      if (keep) remember(known, name, answer);
      return answer;
    }
  };
}

/** @param {Fetch} fetch @param {string} path @param {unknown} body @param {AbortSignal} [signal] */
async function sent(fetch, path, body, signal) {
  const raw = typeof Blob !== "undefined" && body instanceof Blob;
  const type = raw ? "application/octet-stream" : "application/json";
  const post = { method: "POST", headers: { "Content-Type": type }, body: raw ? body : JSON.stringify(body) };
  try {
    return await fetch(path, { ...(body === undefined ? {} : post), signal });
  } catch (error) {
    throw isStopped(error) ? error : new Problem("unreachable");
  }
}

/** @param {Response} response @param {AbortSignal} [signal] */
async function read(response, signal) {
  let answer = null;
  try {
    answer = await response.json();
  } catch (error) {
    if (signal?.aborted || isStopped(error)) throw error;
  }
  if (response.ok && answer !== null) return answer;
  if (response.status === 503) throw new Problem("busy");
  if (typeof answer?.error === "string") throw new Problem("refused", answer.error);
  throw new Problem("unreachable");
}

/** @param {Map<string, unknown>} known @param {string} name @param {unknown} answer */
function remember(known, name, answer) {
  if (known.size >= REMEMBERED) known.delete([...known.keys()][0]);
  known.set(name, answer);
}

/** Tell whether work ended because it was no longer wanted. @param {unknown} error */
export function isStopped(error) {
  return error instanceof Error && error.name === "AbortError";
}

/** @param {number} seconds @param {AbortSignal} [signal] */
function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
