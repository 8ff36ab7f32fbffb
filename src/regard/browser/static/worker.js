/** Translation in a worker, so that the page never freezes; in the page itself, between its events, where workers are forbidden. */
import { Translator } from "./translator.js";

/**
 * @import { ModelRecord, Translation } from "./translator.js"
 * @typedef {{type: "load", record: ModelRecord, parameters: string}|{type: "translate", id: number, text: string}} Request
 * @typedef {{id: number, translation?: Translation, error?: string}} Response without either if a newer request replaced it
 * @typedef {{onmessage: ((event: {data: Request}) => void)|null, postMessage: (response: Response) => void}} Scope of a worker
 * @typedef {{translate: (text: string) => Promise<Translation|null>}} Client
 */

const PAUSE_AFTER_MILLISECONDS = 12; // less than a frame

class Superseded extends Error {}

/** Answer requests that arrive in a scope; a new one cancels the one before it. @param {Scope} scope */
export function serve(scope) {
  let translator = /** @type {Translator|null} */ (null);
  let loadError = "";
  let latest = 0;
  scope.onmessage = async ({ data }) => {
    if (data.type === "load") {
      try {
        translator = new Translator(data.record, data.parameters);
      } catch (error) {
        loadError = String(error);
      }
      return;
    }
    const { id, text } = data;
    latest = id;
    try {
      if (!translator) throw new Error(loadError);
      const translation = await translator.translate(text, { pause: createPause(() => latest !== id) });
      scope.postMessage({ id, translation });
    } catch (error) {
      scope.postMessage(error instanceof Superseded ? { id } : { id, error: String(error) });
    }
  };
}

/**
 * Return a function that lets other events be handled from time to time, and throws once the work is superseded.
 * @param {() => boolean} isSuperseded
 */
function createPause(isSuperseded) {
  let last = performance.now();
  return async () => {
    if (performance.now() - last < PAUSE_AFTER_MILLISECONDS) return;
    await nextTask();
    if (isSuperseded()) throw new Superseded();
    last = performance.now();
  };
}

/** Resolve in a new task: timers would wait for four milliseconds. @returns {Promise<void>} */
function nextTask() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/**
 * Load a model in a worker, or in the page if there can be none; `translate` resolves to null if it was called again.
 * @param {ModelRecord} record
 * @param {string} parameters in base64
 * @param {string} script of the worker
 * @returns {Client}
 */
export function createClient(record, parameters, script) {
  let numRequests = 0;
  const pending = /** @type {Map<number, {request: Request, resolve: (translation: Translation|null) => void,
    reject: (error: Error) => void}>} */ (new Map());
  let post = startWorker(script, receive, fallBack) ?? startInPage(receive);
  post({ type: "load", record, parameters });

  /** @param {Response} response */
  function receive({ id, translation, error }) {
    const promise = pending.get(id);
    pending.delete(id);
    if (error !== undefined) promise?.reject(new Error(error));
    else promise?.resolve(translation ?? null);
  }

  function fallBack() {
    post = startInPage(receive);
    post({ type: "load", record, parameters });
    for (const { request } of pending.values()) post(request);
  }

  return {
    translate: (text) => new Promise((resolve, reject) => {
      const request = /** @type {Request} */ ({ type: "translate", id: ++numRequests, text });
      pending.set(numRequests, { request, resolve, reject });
      post(request);
    }),
  };
}

/**
 * Start a worker; return how to post requests to it, or null if workers are forbidden.
 * @param {string} script
 * @param {(response: Response) => void} receive
 * @param {() => void} onFailure called if the worker does not start
 * @returns {((request: Request) => void)|null}
 */
function startWorker(script, receive, onFailure) {
  try {
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.onmessage = ({ data }) => receive(data);
    worker.onerror = () => {
      worker.terminate();
      onFailure();
    };
    return (request) => worker.postMessage(request);
  } catch {
    return null;
  }
}

/** @param {(response: Response) => void} receive @returns {(request: Request) => void} */
function startInPage(receive) {
  const scope = /** @type {Scope} */ ({ onmessage: null, postMessage: receive });
  serve(scope);
  return (request) => scope.onmessage?.({ data: request });
}
