/** Show messages in the live regions of the page and of the image view. */

import { isAborted, NETWORK_ERROR, onAnswer } from "./api.js";
import { byId, element } from "./elements.js";

const SECONDS = 9;
const MAX_MESSAGES = 4;
const READING = 3000; // milliseconds for which an error is shown, if the server answers again

onAnswer(() => removeMessages(document, NETWORK_ERROR, Date.now() - READING));

/**
 * Show a message.
 * @param {string} text Sentence.
 * @param {{isError?: boolean, action?: string, run?: Function}} options Button and its function.
 */
export function showMessage(text, { isError = false, action = null, run = null } = {}) {
  // a dialog makes all parts of the page inert, and therefore has a region for itself
  const region = byId(byId("image-view").open ? "view-messages" : "messages");
  removeMessages(region, text);
  const message = element("div", { class: isError ? "message is-error" : "message" });
  Object.assign(message, { time: Date.now() });
  message.dataset.text = text;
  message.append(element("span", {}, text));
  if (action) {
    const click = () => (removeMessage(message), run());
    message.append(element("button", { click }, action));
  }
  message.append(
    element(
      "button",
      { "aria-label": "Close the message", click: () => removeMessage(message) },
      "✕",
    ),
  );
  message.addEventListener("focusin", ({ relatedTarget }) => {
    if (!message.contains(relatedTarget)) message.previousFocus = relatedTarget;
  });
  region.append(message);
  while (region.children.length > MAX_MESSAGES) removeMessage(region.firstElementChild);
  if (!isError) removeLater(message);
}

/** Remove the messages with a text that were shown before a time. */
function removeMessages(region, text, time = Infinity) {
  for (const message of region.querySelectorAll(".message")) {
    if (message.dataset.text === text && message.time < time) removeMessage(message);
  }
}

/** Remove a message; the element that had the focus before the message has it again. */
function removeMessage(message) {
  const hadFocus = message.contains(document.activeElement);
  const { previousFocus } = message;
  message.remove();
  if (!hadFocus) return;
  const isUsable = previousFocus?.isConnected && previousFocus.checkVisibility();
  const replacement = byId(byId("image-view").open ? "view-title" : "content");
  (isUsable ? previousFocus : replacement).focus({ preventScroll: true });
}

/** Remove a message after some seconds, unless it is being used. */
function removeLater(message) {
  setTimeout(() => {
    if (message.matches(":hover, :focus-within")) removeLater(message);
    else message.remove();
  }, SECONDS * 1000);
}

/** Show the sentence of an error, unless the request was aborted. */
export function showError(error) {
  if (isAborted(error)) return;
  const isOfServer = error.status !== undefined;
  const text = isOfServer ? error.message : `The page has a defect: ${error.message}`;
  showMessage(text, { isError: true });
}
