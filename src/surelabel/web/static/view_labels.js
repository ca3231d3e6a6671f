/** The list of labels in the image view: probabilities, heat maps and corrections. */

import { correctLabels, TARGET_TEXTS } from "./corrections.js";
import { byId, element, probabilityBar } from "./elements.js";
import { LabelCompletion } from "./label_completion.js";
import { countOf, formatNumber, formatPercent } from "./number_format.js";

const N_SHOWN = 30; // labels with the highest probability
const list = byId("view-labels");
const TARGETS = [
  { target: 1, text: "✓", kind: "is-right" },
  { target: null, text: "?", kind: "is-unknown" },
  { target: 0, text: "✗", kind: "is-wrong" },
];
let image = null; // image of the labels: identifier and name
let hidden = []; // labels that are not listed, highest probability first
let options = null; // functions of the image view
let targets = {}; // corrected targets by label
let kinds = {}; // uncertainties by kind and label

/** Connect the fields that list further labels. */
export function startViewLabels() {
  byId("view-more").addEventListener("click", () => {
    addRows(hidden.splice(0));
    byId("view-more").hidden = true;
  });
  const input = byId("view-find");
  const fragmentAt = (text) => ({ prefix: text, start: 0, end: text.length });
  new LabelCompletion(input, byId("view-options"), fragmentAt, (name) => {
    input.value = "";
    focusLabel(name);
  });
}

/** Remove the labels of the last image. */
export function clearLabels() {
  [image, hidden, targets, kinds] = [null, [], {}, {}];
  list.replaceChildren();
  byId("view-more").hidden = true;
}

/**
 * Show labels with their probabilities.
 * @param {{label: string, probability: number}[]} labels Labels, highest probability first.
 * @param {{id: string, name: string}} shownImage Image of the labels.
 * @param {{ofQuery: string[], origin: Function, showHeatMap: Function}} viewOptions Labels that are
 *   always listed, and functions of the image view.
 */
export function showLabels(labels, shownImage, viewOptions) {
  clearLabels();
  [image, options] = [shownImage, viewOptions];
  const isListed = ({ label }, rank) => rank < N_SHOWN || viewOptions.ofQuery.includes(label);
  hidden = labels.filter((label, rank) => !isListed(label, rank));
  addRows(labels.filter(isListed));
  byId("view-more").hidden = hidden.length === 0;
  byId("view-more").textContent = `Show ${countOf(hidden.length, "more label")}`;
}

/** Mark the corrected targets of the image: 1 or 0 by label. */
export function showCorrections(targetsOfImage) {
  targets = targetsOfImage;
  for (const row of list.children) markTarget(row);
}

/** Show the uncertainties of the labels: an object by label, for each kind. */
export function showUncertainties(kindsOfImage) {
  kinds = kindsOfImage;
  for (const row of list.children) writeUncertainty(row);
}

/** Move the focus to a label; a label without a known probability is listed without it. */
function focusLabel(name) {
  if (!image) return;
  let row = [...list.children].find((other) => other.dataset.label === name);
  if (!row) {
    const index = hidden.findIndex(({ label }) => label === name);
    const [label] = index < 0 ? [{ label: name, probability: null }] : hidden.splice(index, 1);
    addRows([label]);
    row = list.lastElementChild;
  }
  row.scrollIntoView({ block: "center" });
  const buttons = [...row.querySelectorAll("button")];
  buttons.find((button) => button.checkVisibility()).focus({ preventScroll: true });
}

function addRows(labels) {
  for (const label of labels) {
    const row = createRow(label);
    list.append(row);
    markTarget(row);
    writeUncertainty(row);
  }
}

function markTarget(row) {
  const target = Object.hasOwn(targets, row.dataset.label) ? targets[row.dataset.label] : null;
  row.querySelector(".row-target").textContent =
    target === null ? "" : `Corrected: ${TARGET_TEXTS.get(target)}`;
  for (const button of row.querySelectorAll(".mark")) {
    const value = button.dataset.target === "" ? null : Number(button.dataset.target);
    button.setAttribute("aria-pressed", String(target !== null && value === target));
  }
}

function writeUncertainty(row) {
  const { label } = row.dataset;
  const texts = Object.entries(kinds)
    .filter(([, values]) => Object.hasOwn(values, label))
    .map(([kind, values]) => `${kind.replaceAll("_", " ")} ${formatNumber(values[label])}`);
  row.querySelector(".row-uncertainty").textContent = texts.join(", ");
}

function createRow({ label, probability }) {
  const value = probability === null ? "–" : formatPercent(probability);
  const row = element(
    "li",
    {},
    element("span", { class: "row-name" }, label),
    element("span", { class: "row-value" }, value),
    probabilityBar(probability ?? 0),
    element("span", { class: "row-notes soft small" },
      element("span", { class: "row-uncertainty" }), element("span", { class: "row-target" })),
    element("span", { class: "row-actions" },
      createHeatButton(label), ...TARGETS.map((choice) => createTargetButton(label, choice))),
  );
  row.dataset.label = label;
  return row;
}

function createHeatButton(label) {
  const name = `Heat map of ${label}`;
  const show = async (event) => {
    const button = event.currentTarget;
    button.setAttribute("aria-busy", "true");
    const isShown = await options.showHeatMap(label);
    button.removeAttribute("aria-busy");
    if (!isShown) return;
    for (const other of list.querySelectorAll(".heat")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
  };
  const attributes = { class: "heat", "aria-pressed": "false", "aria-label": name, title: name };
  return element("button", { ...attributes, click: show }, "Heat map");
}

function createTargetButton(label, { target, text, kind }) {
  const name = `${label} is ${TARGET_TEXTS.get(target)}`;
  const click = () => correctLabels(image, { [label]: target }, options.origin());
  const attributes = { class: `mark ${kind}`, "data-target": target ?? "", click };
  const state = { "aria-label": name, title: name, "aria-pressed": "false" };
  return element("button", { ...attributes, ...state }, text);
}
