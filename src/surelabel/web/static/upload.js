/** Upload images, and show the labels that the recognizer predicts. */

import { apiAddress, errorOfText, getJson, openLogin, RequestError } from "./api.js";
import { byId, element, probabilityBar } from "./elements.js";
import { showError } from "./messages.js";
import { countOf, formatCount, formatPercent } from "./number_format.js";

const MAX_FILES = 16; // of a request
const MAX_BYTES = 60 * 2 ** 20; // of a request
const REFUSED_UPLOAD =
  "The server does not answer. Check that it runs, and choose the images again.";
const MIN_PROBABILITY = 0.01; // of the labels that are requested

const threshold = byId("upload-threshold");
let queue = Promise.resolve();
let nFiles = 0; // files that were chosen since the page was loaded
let nTagged = 0;
let nFailed = 0;

/** Connect the file field, the drop zone and the threshold. */
export function startUpload() {
  const input = byId("upload-files");
  const zone = byId("drop-zone");
  input.addEventListener("change", () => {
    addFiles([...input.files]);
    input.value = "";
  });
  for (const name of ["dragenter", "dragover"]) {
    zone.addEventListener(name, (event) => {
      event.preventDefault();
      zone.classList.add("is-target");
    });
  }
  zone.addEventListener("dragleave", () => zone.classList.remove("is-target"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("is-target");
    addFiles([...event.dataTransfer.files]);
  });
  threshold.addEventListener("input", showThreshold);
}

/** Show whether the server can tag images. */
export async function showUpload() {
  const { recognizer } = await getJson("health");
  byId("upload-note").hidden = recognizer.state !== "missing";
  byId("upload-note").textContent = recognizer.reason ?? "";
}

function addFiles(files) {
  const cards = files.map((file) => createCard(file));
  nFiles += files.length;
  byId("upload-results").prepend(...cards.map(({ card }) => card));
  for (const { file, content } of cards.filter(isTooLarge)) {
    const size = `${Math.ceil(file.size / 2 ** 20)} MiB`;
    const limit = `${MAX_BYTES / 2 ** 20} MiB`;
    showResult(content, { error: `The file has ${size}, but must have at most ${limit}.` });
  }
  showCounts();
  for (const batch of fileBatches(cards.filter((card) => !isTooLarge(card)))) {
    queue = queue.then(() => sendBatch(batch));
  }
}

function isTooLarge({ file }) {
  return file.size > MAX_BYTES;
}

/** Show how many of the chosen files were tagged. */
function showCounts() {
  const failures = nFailed ? ` ${countOf(nFailed, "file")} failed.` : "";
  const counts = `${formatCount(nTagged)} of ${countOf(nFiles, "file")}`;
  byId("upload-status").textContent = `The labels of ${counts} were predicted.${failures}`;
}

/** Return the files in groups that one request can contain. */
function fileBatches(cards) {
  const batches = [];
  let size = Infinity;
  for (const card of cards) {
    if (size + card.file.size > MAX_BYTES || batches.at(-1).length === MAX_FILES) {
      batches.push([]);
      size = 0;
    }
    batches.at(-1).push(card);
    size += card.file.size;
  }
  return batches;
}

function createCard(file) {
  const preview = element("img", { alt: "", class: "preview" });
  const address = URL.createObjectURL(file);
  preview.addEventListener("load", () => URL.revokeObjectURL(address));
  preview.addEventListener("error", () => {
    URL.revokeObjectURL(address);
    preview.replaceWith(element("span", { class: "preview no-preview" }, "no preview"));
  });
  preview.src = address;
  const note = element("p", { class: "soft" }, "The image is waiting for its upload.");
  const content = element("div", { class: "upload-labels" }, note);
  const title = element("h3", {}, file.name);
  const card = element("li", { class: "card upload" }, preview, element("div", {}, title, content));
  return { file, card, content };
}

async function sendBatch(batch) {
  const form = new FormData();
  for (const { file, content } of batch) {
    form.append("images", file, file.name);
    content.replaceChildren(element("p", { class: "soft" }, "The labels are being predicted."));
  }
  byId("upload-progress").hidden = false;
  try {
    const { images } = await sendForm(form);
    images.forEach((result, index) => showResult(batch[index].content, result));
  } catch (error) {
    for (const { content } of batch) showResult(content, { error: error.message });
    showError(error);
  }
  showCounts();
  byId("upload-progress").hidden = true;
}

/** Send a form, and show how much of it was sent; fetch does not report this. */
function sendForm(form) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", apiAddress("tag", { threshold: MIN_PROBABILITY }));
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      byId("upload-bar").value = total ? loaded / total : 0;
    });
    request.addEventListener("load", () => {
      if (request.status === 401) openLogin();
      if (request.status === 200) resolve(JSON.parse(request.responseText));
      else reject(errorOfText(request.responseText, request.status));
    });
    request.addEventListener("error", () => {
      reject(new RequestError(REFUSED_UPLOAD, 0));
    });
    request.send(form);
  });
}

function showResult(content, { labels, error }) {
  if (error !== undefined) {
    nFailed += 1;
    content.replaceChildren(element("p", { class: "error" }, error));
    return;
  }
  nTagged += 1;
  const rows = labels.map(({ label, probability }) => {
    const row = element(
      "li",
      {},
      element("span", { class: "row-name" }, label),
      element("span", { class: "row-value" }, formatPercent(probability)),
      probabilityBar(probability),
    );
    row.dataset.probability = String(probability);
    return row;
  });
  const none = element("p", { class: "soft no-labels" }, "No label reaches the threshold.");
  content.replaceChildren(element("ul", { class: "bars" }, ...rows), none);
  applyThreshold(content);
}

function showThreshold() {
  const value = Number(threshold.value);
  byId("upload-threshold-output").textContent = `${Math.round(value * 100)} %`;
  for (const content of document.querySelectorAll(".upload-labels")) applyThreshold(content);
}

function applyThreshold(content) {
  let nShown = 0;
  for (const row of content.querySelectorAll("[data-probability]")) {
    row.hidden = Number(row.dataset.probability) < Number(threshold.value);
    if (!row.hidden) nShown += 1;
  }
  const none = content.querySelector(".no-labels");
  if (none) none.hidden = nShown > 0;
}
