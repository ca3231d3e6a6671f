/** Show one image with its labels, heat maps and corrections in a dialog. */

import { getBlob, getJson, imageAddress, isAborted } from "./api.js";
import { onCorrection, undoLastCorrection } from "./corrections.js";
import { byId, element } from "./elements.js";
import { changeLocation, closeLocationImage, locationState } from "./location_state.js";
import { showError, showMessage } from "./messages.js";
import { fileName, relativePath } from "./number_format.js";
import { queryLabels, quotePath } from "./query_language.js";
import {
  clearLabels,
  showCorrections,
  showLabels,
  showUncertainties,
  startViewLabels,
} from "./view_labels.js";

const N_LABELS = 1000; // labels of a request; the list shows the first labels
const UNKNOWN_IMAGE = "The image is not in the index. The index was changed.";
const SIDE = 512; // pixels of a heat map, and of the thumbnail in place of a file

const dialog = byId("image-view");
let sequence = null;
let shown = null; // identifier of the image that the dialog shows
let path = "";
let request = null; // abort controller of the requests of the image
let heatMapAddress = null;

/**
 * Set the images through which the buttons of the image view lead.
 * @param {{at: Function, index: number, origin: Function, onLeave: Function}} images Sequence: `at`
 *   returns the image of a position, or null, and `origin` states how it was chosen.
 */
export function showImageSequence(images) {
  sequence = images;
  updateButtons();
}

/** Return whether the image view leads through a sequence of images. */
export function hasImageSequence() {
  return sequence !== null;
}

/** Open the image view; the address of the page changes. */
export function openImageView(identifier) {
  changeLocation({ image: identifier });
}

/** Connect the buttons and keys of the dialog. */
export function startImageView() {
  startViewLabels();
  byId("view-close").addEventListener("click", closeLocationImage);
  byId("view-previous").addEventListener("click", () => step(-1));
  byId("view-next").addEventListener("click", () => step(1));
  byId("view-plain").addEventListener("click", hideHeatMap);
  byId("view-similar").addEventListener("click", searchSimilarImages);
  byId("view-image").addEventListener("error", showThumbnailInstead);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    closeLocationImage();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && closeLocationImage());
  dialog.addEventListener("keydown", handleKey);
  onCorrection((image) => image === shown && loadCorrections(image).catch(showError));
}

/** Open, change or close the dialog for a state of the address. */
export function followLocationImage({ image }) {
  if (image === shown) return;
  request?.abort();
  if (image) showImage(image);
  else leave();
}

function leave() {
  shown = null;
  hideHeatMap();
  dialog.close();
  const left = sequence;
  sequence = null;
  left?.onLeave?.(left.index);
}

function showImage(identifier) {
  shown = identifier;
  request = new AbortController();
  hideHeatMap();
  byId("view-title").textContent = "Image";
  byId("view-facts").replaceChildren();
  byId("view-state").hidden = true;
  byId("view-note").textContent = "";
  clearLabels();
  const image = byId("view-image");
  image.alt = "";
  image.dataset.isThumbnail = "";
  image.src = imageAddress(identifier, "file");
  if (!dialog.open) dialog.showModal();
  byId("view-title").focus();
  updateButtons();
  describe(identifier)
    .then(() => Promise.all([
      loadCorrections(identifier),
      loadUncertainties(identifier),
      hideHeatMapsWithoutRecognizer(),
    ]))
    .catch((error) => identifier === shown && showImageError(error));
}

/** Show an error. If the image is unknown, the page shows an earlier revision of the index. */
function showImageError(error) {
  const run = () => {
    changeLocation({ image: null }, true);
    location.reload();
  };
  if (error.status === 404) {
    showMessage(UNKNOWN_IMAGE, { isError: true, action: "Load the page again", run });
  } else showError(error);
}

async function describe(identifier) {
  const address = `images/${encodeURIComponent(identifier)}`;
  const content = await getJson(address, { limit: N_LABELS }, request.signal);
  if (identifier !== shown) return;
  path = content.path;
  const name = fileName(path);
  byId("view-title").textContent = name;
  const best = content.labels.slice(0, 3).map(({ label }) => label);
  byId("view-image").alt = `${name}. Labels with the highest probability: ${best.join(", ")}.`;
  showFacts(content);
  const ofQuery = queryLabels(locationState().q).labels.map((label) => label.name);
  showLabels(content.labels, { id: identifier, name }, { ofQuery, origin, showHeatMap });
}

function showFacts({ path: file, date, width, height }) {
  const facts = [["Path", relativePath(file)]];
  if (date) facts.push(["Date", date.replace("T", " ")]);
  if (width) facts.push(["Size", `${width} × ${height} pixels`]);
  const cells = facts.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  byId("view-facts").replaceChildren(...cells.flat());
}

async function loadCorrections(identifier) {
  const address = `images/${encodeURIComponent(identifier)}/corrections`;
  const { labels, is_checked: isChecked } = await getJson(address, {}, request.signal);
  if (identifier !== shown) return;
  showCorrections(labels);
  byId("view-state").hidden = !isChecked;
  byId("view-state").textContent = isChecked ? "All labels of this image were checked." : "";
}

async function loadUncertainties(identifier) {
  const address = `images/${encodeURIComponent(identifier)}/uncertainty`;
  try {
    const { kinds, reason } = await getJson(address, {}, request.signal);
    if (identifier !== shown) return;
    showUncertainties(kinds);
    byId("view-note").textContent = reason ?? "";
  } catch (error) {
    if (isAborted(error)) return;
    byId("view-note").textContent = error.message;
  }
}

async function hideHeatMapsWithoutRecognizer() {
  const { recognizer } = await getJson("health", {}, request.signal);
  dialog.classList.toggle("has-no-recognizer", recognizer.state === "missing");
}

/** Return how the shown image was chosen. */
function origin() {
  if (sequence) return sequence.origin(sequence.index);
  const { q } = locationState();
  return { chosen_by: q ? "query" : "browse", query: q || null, rank: null };
}

/** Show the heat map of a label in place of the image. Return whether it was computed. */
async function showHeatMap(label) {
  const identifier = shown;
  byId("view-caption").textContent = `The heat map of ${label} is being computed.`;
  try {
    const address = imageAddress(identifier, "heat-map", { label, size: SIDE });
    const content = await getBlob(address, request.signal);
    if (identifier !== shown) return false;
    releaseHeatMap();
    heatMapAddress = URL.createObjectURL(content);
    byId("view-image").src = heatMapAddress;
    byId("view-caption").textContent = `Heat map of ${label}`;
    byId("view-plain").hidden = false;
    return true;
  } catch (error) {
    if (!isAborted(error)) byId("view-caption").textContent = "";
    showError(error);
    return false;
  }
}

function hideHeatMap() {
  byId("view-caption").textContent = "";
  byId("view-plain").hidden = true;
  for (const button of byId("view-labels").querySelectorAll(".heat")) {
    button.setAttribute("aria-pressed", "false");
  }
  if (!heatMapAddress) return;
  releaseHeatMap();
  if (shown) byId("view-image").src = imageAddress(shown, "file");
}

function releaseHeatMap() {
  if (heatMapAddress) URL.revokeObjectURL(heatMapAddress);
  heatMapAddress = null;
}

/** Show a thumbnail, if the browser cannot show the format of the file. */
function showThumbnailInstead() {
  const image = byId("view-image");
  if (!shown || heatMapAddress) return;
  if (image.dataset.isThumbnail) {
    image.removeAttribute("src");
    return;
  }
  image.dataset.isThumbnail = "true";
  image.src = imageAddress(shown, "thumbnail", { size: SIDE });
}

function updateButtons() {
  byId("view-previous").disabled = !sequence || sequence.index === 0;
  byId("view-next").disabled = !sequence;
}

async function step(change) {
  if (!sequence) return;
  const current = sequence;
  const position = current.index + change;
  const image = position < 0 ? null : await current.at(position);
  if (current !== sequence) return;
  if (!image) {
    byId("view-previous").disabled ||= change < 0;
    byId("view-next").disabled ||= change > 0;
    return;
  }
  current.index = position;
  changeLocation({ image: image.id }, true);
}

function searchSimilarImages() {
  sequence = null;
  changeLocation({ tab: "search", q: `like:${quotePath(relativePath(path))}`, image: null });
}

function handleKey(event) {
  const isText = event.target.matches("input, textarea");
  if (isText || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "ArrowRight") step(1);
  else if (event.key === "u") undoLastCorrection();
  else return;
  event.preventDefault();
}
