/** Record corrected targets, and undo them. */

import { postJson } from "./api.js";
import { showError, showMessage } from "./messages.js";
import { isolate } from "./number_format.js";

export const TARGET_TEXTS = new Map([
  [1, "positive"],
  [0, "negative"],
  [null, "unknown"],
]);
const MAX_QUERY = 2000; // characters of a query that the server records
const listeners = [];
let last = null; // last correction: event and identifier of the image
const recent = new Map(); // labels that were corrected since the page was loaded, by image

/** Call a function with the identifier of each image whose corrections change. */
export function onCorrection(listener) {
  listeners.push(listener);
}

/** Return the targets of an image that were corrected since the page was loaded. */
export function recentTargets(image) {
  return recent.get(image)?.labels ?? null;
}

/**
 * Record the targets of labels of an image, and show a message with a button to undo them.
 * @param {{id: string, name: string}} image Identifier and name of the image.
 * @param {Object<string, 1|0|null>} labels Targets by label; null is unknown.
 * @param {{chosen_by: string, query?: string, rank?: number}} origin How the image was chosen.
 * @returns {Promise<boolean>} Whether the server recorded the targets.
 */
export async function correctLabels(image, labels, origin) {
  try {
    const query = (origin.query ?? "").length > MAX_QUERY ? null : origin.query;
    const content = { image: image.id, labels, ...origin, query };
    const { event, note } = await postJson("corrections", content);
    if (note) showMessage(note);
    recent.set(image.id, { event, labels: { ...recent.get(image.id)?.labels, ...labels } });
    notify(image.id);
    last = { event, image: image.id };
    showMessage(describeTargets(image.name, labels), {
      action: "Undo",
      run: () => undoCorrection(event, image.id),
    });
    return true;
  } catch (error) {
    showError(error);
    return false;
  }
}

/** Undo the last correction of this page, once. */
export function undoLastCorrection() {
  if (last) undoCorrection(last.event, last.image);
}

/** Undo an event. Return whether the server removed it. */
export async function undoCorrection(event, image) {
  if (last?.event === event) last = null;
  try {
    await postJson("corrections/undo", { event });
    recent.delete(image);
    notify(image);
    showMessage("The correction was undone.");
    return true;
  } catch (error) {
    showError(error);
    return false;
  }
}

function describeTargets(name, labels) {
  const parts = Object.entries(labels).map(
    ([label, target]) => `${label} is ${TARGET_TEXTS.get(target)}`,
  );
  return `${isolate(name)}: ${parts.join(", ")}.`;
}

function notify(image) {
  for (const listener of listeners) listener(image);
}
