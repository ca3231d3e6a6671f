/** Evaluate the recalibration with the checked images, and apply it. */

import { getJson, postJson } from "./api.js";
import { byId, element } from "./elements.js";
import { showError, showMessage } from "./messages.js";
import { countOf, formatNumber } from "./number_format.js";

const POLLING = 1000; // milliseconds
const APPLIED = "The index has the new calibration. Load the page again to see its probabilities.";
const TERMS =
  "Lower values are better. The log loss measures all errors of the probabilities. The expected " +
  "calibration error is the mean difference between probabilities and frequencies. Its noise " +
  "floor is the value for perfectly calibrated probabilities of as many images.";
let isPolling = false;
let lastState = null;

/** Connect the buttons. */
export function startRecalibration() {
  byId("recalibration-evaluate").addEventListener("click", evaluate);
  byId("recalibration-apply").addEventListener("click", apply);
}

/** Show the number of checked images and the state of the recalibration. */
export async function refreshRecalibration() {
  const content = await getJson("recalibration");
  const isRunning = content.state === "running";
  const canEvaluate = content.has_recognizer && content.n_missing === 0 && !isRunning;
  byId("recalibration-evaluate").disabled = !canEvaluate;
  byId("recalibration-state").textContent = describeState(content);
  if (content.state === "applied" && lastState === "running") {
    const run = () => location.reload();
    showMessage(APPLIED, { action: "Load the page again", run });
    byId("recalibration-result").replaceChildren();
  }
  lastState = content.state;
  if (isRunning) byId("recalibration-apply").hidden = true;
  if (isRunning && !isPolling) poll();
}

function describeState(content) {
  const { state, n_checked: nChecked, n_required: nRequired, n_missing: nMissing } = content;
  if (!content.has_recognizer) {
    return content.reason_no_recognizer ?? "The recognizer of the index is missing.";
  }
  if (state === "running") return "The probabilities of the index are being computed again.";
  const verb = (count) => (count === 1 ? "is" : "are");
  const images = countOf(nChecked, "image");
  const sentences = [`${images} of the random sample ${verb(nChecked)} checked.`];
  if (nMissing > 0) {
    sentences.push(`At least ${nRequired} are required; ${nMissing} ${verb(nMissing)} missing.`);
  }
  if (state === "failed") sentences.push(`The calibration was not applied: ${content.reason}`);
  return sentences.join(" ");
}

async function evaluate() {
  byId("recalibration-evaluate").disabled = true;
  const note = element("p", {}, "The calibration is being measured.");
  byId("recalibration-result").replaceChildren(note);
  try {
    const result = await postJson("recalibration");
    const sentences = [result.sentence, ...(result.notes ?? [])];
    const paragraphs = sentences.map((sentence) => element("p", {}, sentence));
    const terms = element("p", { class: "soft small" }, TERMS);
    byId("recalibration-result").replaceChildren(createTable(result), terms, ...paragraphs);
    byId("recalibration-apply").hidden = !result.is_improvement;
  } catch (error) {
    byId("recalibration-result").replaceChildren(element("p", { class: "error" }, error.message));
  }
  await refreshRecalibration().catch(showError);
}

function createTable({ log_loss: loss, ece, n_images: nImages }) {
  const header = ["Metric", "Before", "After", "Change"];
  const interval = (low, high) =>
    low === undefined || low === null ? "" : ` (${formatNumber(low)} to ${formatNumber(high)})`;
  const change = `${formatNumber(loss.change)}${interval(loss.low, loss.high)}`;
  const rows = [
    ["Log loss", formatNumber(loss.before), formatNumber(loss.after), change],
    ["Expected calibration error",
      `${formatNumber(ece.before)}${interval(ece.before_low, ece.before_high)}`,
      `${formatNumber(ece.after)}${interval(ece.after_low, ece.after_high)}`, "–"],
    ["Noise floor of the calibration error",
      formatNumber(ece.noise_floor_before), formatNumber(ece.noise_floor_after), "–"],
  ];
  const cells = ([first, ...others]) => {
    const values = others.map((text) => element("td", {}, text));
    return element("tr", {}, element("th", { scope: "row" }, first), ...values);
  };
  const images = countOf(nImages, "checked image");
  const caption =
    `Cross-fitted on ${images}: each image is evaluated with a calibration that was fitted ` +
    "without it. The ranges are intervals of 95 %.";
  const heads = header.map((text) => element("th", { scope: "col" }, text));
  const table = element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows.map(cells)),
  );
  const label = "Metrics before and after the recalibration";
  const attributes = { class: "wide", role: "region", "aria-label": label, tabindex: "0" };
  return element("div", attributes, table);
}

async function apply() {
  byId("recalibration-apply").disabled = true;
  try {
    await postJson("recalibration/apply");
    byId("recalibration-apply").hidden = true;
    byId("recalibration-title").focus({ preventScroll: true }); // the button is hidden
    lastState = "running";
    await refreshRecalibration();
  } catch (error) {
    showError(error);
  } finally {
    byId("recalibration-apply").disabled = false;
  }
}

async function poll() {
  isPolling = true;
  while (lastState === "running") {
    await new Promise((resolve) => setTimeout(resolve, POLLING));
    try {
      await refreshRecalibration();
    } catch (error) {
      showError(error);
      break;
    }
  }
  isPolling = false;
}
