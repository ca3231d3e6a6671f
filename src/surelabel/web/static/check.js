/** Check all labels of randomly sampled images. */

import { getJson, imageAddress, postJson } from "./api.js";
import { undoCorrection } from "./corrections.js";
import { byId, element } from "./elements.js";
import { LabelCompletion } from "./label_completion.js";
import { showError, showMessage } from "./messages.js";
import { fileName, formatPercent, relativePath } from "./number_format.js";
import { refreshRecalibration } from "./recalibration.js";

const COUNT = 30; // images of a sample
const SEED = 0;
const IS_POSITIVE = 0.5; // probability from which a label is preselected

let images = [];
let nChecked = 0; // in this sample
let nImages = 0;
let lastCheck = null; // event and image of the last check

/** Connect the buttons of the tab. */
export function startCheck() {
  byId("check-start").addEventListener("click", () => drawSample().catch(showError));
  byId("check-save").addEventListener("click", saveImage);
  byId("check-skip").addEventListener("click", skipImage);
  byId("check-undo").addEventListener("click", undoLastCheck);
  const input = byId("check-add");
  const fragmentAt = (text) => ({ prefix: text, start: 0, end: text.length });
  new LabelCompletion(input, byId("check-options"), fragmentAt, (name) => {
    input.value = "";
    addLabel(name);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") addNamedLabel(input).catch(showError);
  });
}

async function drawSample() {
  byId("check-start").disabled = true;
  try {
    const sample = await postJson("sample", { count: COUNT, seed: SEED });
    images = sample.images.filter((image) => !image.is_checked).slice(0, COUNT);
    [nChecked, nImages, lastCheck] = [0, images.length, null];
    byId("check-note").hidden = images.length > 0;
    byId("check-note").textContent = images.length ? "" : "All images of the index were checked.";
    showNextImage();
  } finally {
    byId("check-start").disabled = false;
  }
}

function showNextImage() {
  const image = images[0];
  showProgress();
  byId("check-work").hidden = !image;
  byId("check-start").hidden = Boolean(image);
  byId("check-skip").disabled = images.length < 2;
  byId("check-start").textContent = `Check ${COUNT} more images`;
  byId("check-undo").hidden = lastCheck === null;
  if (!image) {
    byId("check-note").hidden = nImages > 0;
    if (nImages) byId("check-start").focus();
    return;
  }
  const name = fileName(image.path);
  byId("check-image").src = imageAddress(image.id, "thumbnail", { size: 512 });
  byId("check-image").alt = name;
  byId("check-path").textContent = relativePath(image.path);
  const toggles = image.labels.map(({ label, probability, target }) =>
    createToggle(label, probability, target ?? probability >= IS_POSITIVE),
  );
  byId("check-toggles").replaceChildren(...toggles);
  byId("check-question").focus({ preventScroll: true });
}

function createToggle(label, probability, isPositive) {
  const input = element("input", { type: "checkbox", checked: Boolean(isPositive) });
  input.dataset.label = label;
  const value = probability === null ? "" : formatPercent(probability);
  const texts = [element("span", {}, label), element("span", { class: "soft" }, value)];
  return element("li", {}, element("label", {}, input, ...texts));
}

/** Add the label that the text field names, if the index has it. */
async function addNamedLabel(input) {
  const name = input.value.trim();
  if (!name) return;
  const { labels } = await getJson("labels", { prefix: name, limit: 50 });
  const label = labels.find((other) => other.name.toLowerCase() === name.toLowerCase());
  if (!label) {
    showMessage(`The index has no label ${name}. Choose a label of the list.`, { isError: true });
    return;
  }
  input.value = "";
  addLabel(label.name);
}

/** Add a label that is positive, or select it if it is listed. */
function addLabel(name) {
  const inputs = [...byId("check-toggles").querySelectorAll("input")];
  const listed = inputs.find((input) => input.dataset.label === name);
  if (listed) {
    listed.checked = true;
    listed.focus();
    return;
  }
  const toggle = createToggle(name, null, true);
  byId("check-toggles").prepend(toggle);
  toggle.querySelector("input").focus();
}

async function saveImage() {
  const [image] = images;
  const labels = {};
  for (const input of byId("check-toggles").querySelectorAll("input")) {
    labels[input.dataset.label] = input.checked ? 1 : 0;
  }
  byId("check-save").disabled = true;
  try {
    const content = { image: image.id, labels, others: 0, sample: true };
    const { event } = await postJson("corrections", content);
    lastCheck = { event, image: { ...image, labels: labelsWithTargets(image, labels) } };
    nChecked += 1;
    images.shift();
    showNextImage();
    await refreshRecalibration();
  } catch (error) {
    showError(error);
  } finally {
    byId("check-save").disabled = false;
  }
}

/** Return the labels of a checked image; labels that were added have no probability. */
function labelsWithTargets(image, targets) {
  const probabilities = new Map(image.labels.map((row) => [row.label, row.probability]));
  return Object.entries(targets).map(([label, target]) => ({
    label,
    probability: probabilities.get(label) ?? null,
    target,
  }));
}

/** Undo the last check, and show its image again with its targets. */
async function undoLastCheck() {
  const { event, image } = lastCheck;
  byId("check-undo").disabled = true;
  if (await undoCorrection(event, image.id)) {
    lastCheck = null;
    nChecked -= 1;
    images.unshift(image);
    showNextImage();
    await refreshRecalibration().catch(showError);
  }
  byId("check-undo").disabled = false;
}

function skipImage() {
  images.push(images.shift()); // the last image that remains is shown until it is checked
  byId("check-note").hidden = false;
  byId("check-note").textContent =
    "Skipped images come again at the end. The sample is complete when all of them are checked.";
  showNextImage();
}

function showProgress() {
  byId("check-progress").hidden = nImages === 0;
  byId("check-bar").max = nImages || 1;
  byId("check-bar").value = nChecked;
  byId("check-count").textContent = `${nChecked} of ${nImages} checked`;
}
