/** Send requests to the API of the server. */

export const NETWORK_ERROR =
  "The server does not answer. Check that it runs, and repeat the request.";

const answerListeners = [];

/** Error of a request, with the sentence of the server. */
export class RequestError extends Error {
  constructor(message, status, position = null) {
    super(message);
    this.status = status;
    this.position = position;
  }
}

/** Return the address of an operation, with its arguments; null and undefined are left out. */
export function apiAddress(path, values = {}) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `/api/${path}${query ? `?${query}` : ""}`;
}

/** Return the address of an operation of an image. */
export function imageAddress(identifier, operation, values = {}) {
  return apiAddress(`images/${encodeURIComponent(identifier)}/${operation}`, values);
}

/** Return the JSON object of a GET request. */
export async function getJson(path, values = {}, signal = undefined) {
  return (await send(apiAddress(path, values), { signal })).json();
}

/** Send a JSON object, and return the JSON object of the response. */
export async function postJson(path, content = undefined) {
  const body = content === undefined ? {} : { body: JSON.stringify(content) };
  const headers = content === undefined ? {} : { "content-type": "application/json" };
  return (await send(apiAddress(path), { method: "POST", headers, ...body })).json();
}

/** Return the content of an address, such as an image. */
export async function getBlob(address, signal) {
  return (await send(address, { signal })).blob();
}

/** Return whether an error is that of an aborted request, which the page does not show. */
export function isAborted(error) {
  return error.name === "AbortError";
}

/** Return the error of a response, whose text is the JSON object of an error. */
export function errorOfText(text, status) {
  try {
    const { error, position } = JSON.parse(text);
    if (typeof error === "string") return new RequestError(error, status, position ?? null);
  } catch {
    // the text is not JSON
  }
  return new RequestError(`The server answered with the status ${status}.`, status);
}

/** Call a function after each response of the server. */
export function onAnswer(listener) {
  answerListeners.push(listener);
}

/** Open the form for the token, because the server refused the cookie. */
export function openLogin() {
  location.assign(`/login?expired${location.hash}`);
}

async function send(address, options) {
  let response;
  try {
    response = await fetch(address, { credentials: "same-origin", ...options });
  } catch (error) {
    throw isAborted(error) ? error : new RequestError(NETWORK_ERROR, 0);
  }
  for (const listener of answerListeners) listener();
  if (response.ok) return response;
  if (response.status === 401) openLogin();
  throw errorOfText(await response.text(), response.status);
}
