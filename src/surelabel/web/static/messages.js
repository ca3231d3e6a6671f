/** Show messages in the live regions of the page and of the image view. */

import { isAborted } from "./api.js";
import { byId, element } from "./elements.js";

const SECONDS = 9;
const MAX_MESSAGES = 4;

/**
 * Show a message.
 * @param {string} text Sentence.
 * @param {{isError?: boolean, action?: string, run?: Function}} options Button and its function.
 */
export function showMessage(text, { isError = false, action = null, run = null } = {}) {
  // a dialog makes all parts of the page inert, and therefore has a region for itself
  const region = byId(byId("image-view").open ? "view-messages" : "messages");
  for (const old of region.querySelectorAll(".message")) {
    if (old.dataset.text === text) old.remove();
  }
  const message = element("div", { class: isError ? "message is-error" : "message" });
  message.dataset.text = text;
  message.append(element("span", {}, text));
  if (action) {
    message.append(element("button", { click: () => (message.remove(), run()) }, action));
  }
  message.append(
    element("button", { "aria-label": "Close the message", click: () => message.remove() }, "✕"),
  );
  region.append(message);
  while (region.children.length > MAX_MESSAGES) region.firstElementChild.remove();
  if (!isError) setTimeout(() => message.remove(), SECONDS * 1000);
}

/** Show the sentence of an error, unless the request was aborted. */
export function showError(error) {
  if (isAborted(error)) return;
  const isOfServer = error.status !== undefined;
  const text = isOfServer ? error.message : `The page has a defect: ${error.message}`;
  showMessage(text, { isError: true });
}
