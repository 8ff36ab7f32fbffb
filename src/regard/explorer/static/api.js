/** HTTP client of the explorer's JSON API, with retries while the server is busy and a response cache. */

const BUSY_STATUSES = [429, 503];
const MAX_ATTEMPTS = 8; // while the server answers with one of them
const MAX_RETRY_SECONDS = 30;
const MAX_CACHED_RESPONSES = 40; // so that switching the language or going back sends nothing

/**
 * @typedef {{body?: unknown, signal?: AbortSignal, cache?: boolean, onBusy?: (seconds: number) => void}} RequestOptions
 * @typedef {(path: string, options?: RequestOptions) => Promise<any>} SendRequest
 * The response has the schema that the API's description gives for the path.
 * @typedef {(path: string, init: RequestInit) => Promise<Response>} Fetch
 * @typedef {(seconds: number, signal?: AbortSignal) => Promise<unknown>} Sleep
 */

/** A failed request. `kind` is "busy", "unreachable", or "rejected" with the server's own message. */
export class ApiError extends Error {
  /** @param {"busy"|"unreachable"|"rejected"} kind */
  constructor(kind, message = String(kind)) {
    super(message);
    this.kind = kind;
  }
}

/** @type {{fetch: Fetch, sleep: Sleep}} */
const DEFAULTS = {
  fetch: (path, init) => globalThis.fetch(path, init),
  sleep: (seconds, signal) => abortableSleep(seconds, signal),
};

/**
 * Create a client: a function `request(path, {body, signal, cache, onBusy})`.
 *
 * A `body` is posted as JSON, or unchanged if it is a Blob. With `cache`, the response to the same path and body is
 * remembered. `onBusy(seconds)` is called before each pause while the server is busy.
 * @returns {SendRequest}
 */
export function createClient({ fetch, sleep } = DEFAULTS) {
  const responses = /** @type {Map<string, unknown>} */ (new Map());
  return async function request(path, { body, signal, cache = false, onBusy = () => {} } = {}) {
    const cacheKey = cache ? JSON.stringify([path, body]) : "";
    if (responses.has(cacheKey)) return responses.get(cacheKey);
    for (let attempt = 1; ; attempt++) {
      const response = await send(fetch, path, body, signal);
      if (BUSY_STATUSES.includes(response.status) && attempt < MAX_ATTEMPTS) {
        const seconds = Math.min(Math.max(Number(response.headers.get("Retry-After")) || 1, 1), MAX_RETRY_SECONDS);
        onBusy(seconds);
        await sleep(seconds, signal);
        continue;
      }
      const data = await readJson(response, signal);
      if (cache) addToCache(responses, cacheKey, data);
      return data;
    }
  };
}

/** @param {Fetch} fetch @param {string} path @param {unknown} body @param {AbortSignal} [signal] */
async function send(fetch, path, body, signal) {
  const isBlob = typeof Blob !== "undefined" && body instanceof Blob;
  const type = isBlob ? "application/octet-stream" : "application/json";
  const post = { method: "POST", headers: { "Content-Type": type }, body: isBlob ? body : JSON.stringify(body) };
  try {
    return await fetch(path, { ...(body === undefined ? {} : post), signal });
  } catch (error) {
    throw isAbortError(error) ? error : new ApiError("unreachable");
  }
}

/** @param {Response} response @param {AbortSignal} [signal] */
async function readJson(response, signal) {
  let data = null;
  try {
    data = await response.json();
  } catch (error) {
    if (signal?.aborted || isAbortError(error)) throw error;
  }
  if (response.ok && data !== null) return data;
  if (BUSY_STATUSES.includes(response.status)) throw new ApiError("busy");
  if (typeof data?.error === "string") throw new ApiError("rejected", data.error);
  throw new ApiError("unreachable");
}

/** @param {Map<string, unknown>} responses @param {string} key @param {unknown} data */
function addToCache(responses, key, data) {
  if (responses.size >= MAX_CACHED_RESPONSES) responses.delete([...responses.keys()][0]);
  responses.set(key, data);
}

/** Return whether a request ended because it was aborted. @param {unknown} error */
export function isAbortError(error) {
  return error instanceof Error && error.name === "AbortError";
}

/** @param {number} seconds @param {AbortSignal} [signal] */
function abortableSleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
