/** Describe the state of the server, and show the history of the corrections. */

import { getJson } from "./api.js";
import { TARGET_TEXTS, undoCorrection } from "./corrections.js";
import { byId, element } from "./elements.js";
import { openImageView } from "./image_view.js";
import { showError } from "./messages.js";
import { countOf, formatCount, formatPercent, relativePath } from "./number_format.js";

const PAGE_SIZE = 200; // corrections of a request
const POLLING = 1500; // milliseconds, until the recognizer is loaded
const CHOICES = {
  query: "search",
  similar: "similar images",
  label_next: "proposal",
  audit: "audit",
  browse: "browsing",
  random: "random sample",
};

const MAX_LISTED = 12; // labels of an event, of which more are summarized

let isShown = false;
let corrections = []; // loaded corrections, newest first

/** Connect the button of the history. */
export function startAbout() {
  byId("history-more").addEventListener("click", () => {
    loadHistory(corrections.length).catch(showError);
  });
}

/** Request the state of the server and the last corrections. */
export function showAbout() {
  isShown = true;
  loadHealth().catch(showError);
  loadHistory(0).catch(showError);
}

/** End the requests of the state, when another tab is shown. */
export function hideAbout() {
  isShown = false;
}

async function loadHealth() {
  const { index, recognizer } = await getJson("health");
  byId("about-images").textContent = formatCount(index.images);
  byId("about-labels").textContent = formatCount(index.labels);
  byId("about-calibration").textContent = index.calibration || "The index does not describe it.";
  byId("about-index").textContent = index.error ?? `Revision ${index.revision}, ready`;
  const { state, reason } = recognizer;
  const states = { ready: "Ready", loading: "The recognizer is loading.", missing: reason };
  byId("about-recognizer").textContent = states[state] ?? state;
  if (state === "loading" && isShown) {
    setTimeout(() => isShown && loadHealth().catch(showError), POLLING);
  }
}

async function loadHistory(offset) {
  const content = await getJson("corrections", { offset, limit: PAGE_SIZE });
  const { n_corrections: n, n_images: nImages, n_checked: nChecked } = content;
  corrections = [...corrections.slice(0, offset), ...content.corrections];
  byId("about-file").textContent = content.file ?? "–";
  const checked = `${countOf(nChecked, "image")} of the random sample checked completely`;
  byId("history-count").textContent = n
    ? `${countOf(n, "correction")}, with the undone ones. ` +
      `${countOf(nImages, "image")} corrected; ${checked}.`
    : "No target was corrected.";
  const hasMore = corrections.length < n && content.corrections.length > 0;
  const events = eventsOf(corrections);
  const isCut = (index) => hasMore && index === events.length - 1;
  const rows = events.map((event, index) => createRow(event, isCut(index)));
  byId("history").replaceChildren(...rows);
  byId("history-more").hidden = !hasMore;
}

/** Return the corrections of each event; those of one event are next to each other. */
function eventsOf(rows) {
  const events = [];
  for (const row of rows) {
    if (events.at(-1)?.[0].event === row.event) events.at(-1).push(row);
    else events.push([row]);
  }
  return events;
}

/** Return the row of an event, of which some corrections may not be loaded. */
function createRow(rows, isCut) {
  const { event, image, path, chosen_by: chosenBy, time, is_undone: isUndone } = rows[0];
  const name = relativePath(path);
  const labels = describeLabels(rows, isCut);
  const undo = async () => {
    if (!(await undoCorrection(event, image))) return;
    await loadHistory(0).catch(showError);
    byId("history-region").focus({ preventScroll: true }); // the button was removed
  };
  const open = { class: "link", click: () => openImageView(image) };
  return element(
    "tr",
    { class: isUndone ? "is-undone" : null },
    element("td", {}, time.replace("T", " ").slice(0, 16)),
    element("td", {}, image ? element("button", open, name) : name),
    element("td", {}, labels),
    element("td", {}, CHOICES[chosenBy] ?? chosenBy ?? "–"),
    element("td", {}, isUndone
      ? "undone"
      : element("button", { "aria-label": `Undo: ${labels}, ${name}`, click: undo }, "Undo")),
  );
}

/** Return the labels of an event with their targets; of many labels, only the positive ones. */
function describeLabels(rows, isCut) {
  const isLong = isCut || rows.length > MAX_LISTED;
  const listed = isLong ? rows.filter(({ corrected }) => corrected === 1) : rows;
  const texts = listed.map(({ label, corrected, probability }) => {
    const value = probability === null ? "" : ` (${formatPercent(probability)})`;
    return `${label} ${TARGET_TEXTS.get(corrected)}${value}`;
  });
  const nOthers = rows.length - listed.length;
  if (isCut) texts.push("other labels");
  else if (nOthers) texts.push(countOf(nOthers, "other label"));
  return texts.join(", ");
}
