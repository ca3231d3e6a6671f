/** Upload images, and show the labels that the recognizer predicts. */

import { apiAddress, errorOfText, RequestError } from "./api.js";
import { byId, element, probabilityBar } from "./elements.js";
import { showError } from "./messages.js";
import { countOf, formatPercent } from "./number_format.js";

const MAX_FILES = 16; // of a request
const MAX_BYTES = 60 * 2 ** 20; // of a request
const REFUSED_UPLOAD =
  "The server does not answer, or refused the size of the upload. Send fewer images.";
const MIN_PROBABILITY = 0.01; // of the labels that are requested

const threshold = byId("upload-threshold");
let queue = Promise.resolve();

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

function addFiles(files) {
  const cards = files.map((file) => createCard(file));
  byId("upload-results").prepend(...cards.map(({ card }) => card));
  for (const batch of fileBatches(cards)) {
    queue = queue.then(() => sendBatch(batch));
  }
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
  byId("upload-status").textContent = `${countOf(batch.length, "image")} in work`;
  try {
    const { images } = await sendForm(form);
    images.forEach((result, index) => showResult(batch[index].content, result));
    const count = countOf(images.length, "image");
    byId("upload-status").textContent = `The labels of ${count} were predicted.`;
  } catch (error) {
    for (const { content } of batch) showResult(content, { error: error.message });
    byId("upload-status").textContent = "";
    showError(error);
  }
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
    content.replaceChildren(element("p", { class: "error" }, error));
    return;
  }
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
