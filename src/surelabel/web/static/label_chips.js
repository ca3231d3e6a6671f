/** The labels of the index, with buttons that add them to the query or exclude them. */

import { getJson } from "./api.js";
import { byId, debounce, element } from "./elements.js";
import { showError, showMessage } from "./messages.js";
import { countOf, formatCount, formatExpected } from "./number_format.js";
import { onQueryText, queryText, submitQuery } from "./query_box.js";
import { queryLabels, withLabel } from "./query_language.js";

const MAX_CHIPS = 60;
const N_FILTERED = 300; // labels with a prefix, of which those with the highest number are shown
const MAX_LABELS = 10000; // labels of a response
const POLLING = 1500; // milliseconds, until the expected numbers are complete
const DELAY = 120;
const MAX_PREFIX = 200; // characters

const list = byId("label-chips");
const queryList = byId("query-chips");
const filter = byId("label-filter");
let topLabels = [];
let shownSums = new Map();
let nShown = 0;

/** Take over the labels of the page, and request them if the numbers are not complete. */
export function startLabelChips() {
  topLabels = [...list.children].map((chip) => ({
    name: chip.dataset.label,
    expected: chip.dataset.expected === "" ? null : Number(chip.dataset.expected),
  }));
  showChips(topLabels);
  onQueryText(updateStates);
  filter.addEventListener("input", debounce(filterChips, DELAY));
  if (matchMedia("(max-width: 760px)").matches) byId("labels-details").open = false;
  if (list.dataset.isComplete === "false") requestTopLabels().catch(showError);
  else noteHiddenLabels(Number(list.dataset.nLabels));
}

/** Show the labels of a query above all labels. */
export function showLabelsOfQuery(text) {
  const hadFocus = queryList.contains(document.activeElement);
  const names = [...new Set(queryLabels(text).labels.map((label) => label.name))];
  const chips = names.map((name) => createChip({ name, expected: expectedOf(name) }));
  queryList.replaceChildren(...chips);
  if (hadFocus) byId("query").focus();
  updateStates(text);
  for (const chip of queryList.children) showExpected(chip).catch(showError);
}

function expectedOf(name) {
  return topLabels.find((label) => label.name === name)?.expected ?? null;
}

/** Request the expected number of a label that is not among those with the highest number. */
async function showExpected(chip) {
  const count = chip.querySelector(".chip-count");
  if (count.textContent) return;
  const name = chip.dataset.label;
  const prefix = name.slice(0, MAX_PREFIX);
  const { labels } = await getJson("labels", { prefix, limit: N_FILTERED });
  const expected = labels.find((label) => label.name === name)?.expected_images ?? null;
  count.textContent = expected === null ? "" : `≈ ${formatExpected(expected)}`;
}

/**
 * Show the sums of the probabilities of the loaded hits next to the labels of the query.
 * @param {{terms: Object<string, number>}[]} hits Hits of the first page.
 */
export function showCountsOfHits(hits) {
  shownSums = new Map();
  nShown = hits.length;
  for (const hit of hits) {
    for (const [name, probability] of Object.entries(hit.terms ?? {})) {
      shownSums.set(name, (shownSums.get(name) ?? 0) + probability);
    }
  }
  updateStates(queryText());
}

async function requestTopLabels() {
  const { is_complete: isComplete } = await getJson("labels", { limit: 1 });
  if (!isComplete) {
    setTimeout(() => requestTopLabels().catch(showError), POLLING);
    return;
  }
  const { labels } = await getJson("labels", { limit: MAX_LABELS });
  topLabels = highestLabels(labels);
  showLabelsOfQuery(queryText());
  if (!filter.value.trim()) showChips(topLabels);
  noteHiddenLabels(Number(list.dataset.nLabels));
}

async function filterChips() {
  const prefix = filter.value.trim();
  if (!prefix) {
    showChips(topLabels);
    noteHiddenLabels(Number(list.dataset.nLabels));
    return;
  }
  try {
    const { labels, n_labels: nLabels } = await getJson("labels", { prefix, limit: N_FILTERED });
    if (filter.value.trim() !== prefix) return;
    showChips(highestLabels(labels));
    if (nLabels) noteHiddenLabels(nLabels);
    else byId("label-note").textContent = "No label begins with this text.";
  } catch (error) {
    showError(error);
  }
}

function highestLabels(labels) {
  return labels
    .map(({ name, expected_images: expected }) => ({ name, expected }))
    .sort((a, b) => (b.expected ?? 0) - (a.expected ?? 0))
    .slice(0, MAX_CHIPS);
}

function noteHiddenLabels(nLabels) {
  const nHidden = nLabels - list.children.length;
  byId("label-note").textContent =
    nHidden > 0 ? `${formatCount(nHidden)} more labels: filter them by their beginning.` : "";
}

function showChips(labels) {
  list.replaceChildren(...labels.map(createChip));
  updateStates(queryText());
}

function createChip({ name, expected }) {
  const chip = element("li", { class: "chip" });
  chip.dataset.label = name;
  const count = expected === null ? "" : `≈ ${formatExpected(expected)}`;
  const button = (sign, text, verb) => {
    const label = `${verb} ${name}`;
    const toggle = () => changeQuery(name, sign);
    const attributes = { type: "button", "aria-label": label, title: label, click: toggle };
    return element("button", { ...attributes, "data-sign": sign, "aria-pressed": "false" }, text);
  };
  chip.append(
    element("span", { class: "chip-name" }, name),
    element("span", { class: "chip-count" }, count),
    button(1, "+", "Require"),
    button(-1, "−", "Exclude"),
    element("span", { class: "chip-shown" }),
  );
  return chip;
}

function changeQuery(name, sign) {
  const text = queryText();
  const signs = queryLabels(text).labels.filter((label) => label.name === name);
  const isOn = signs.some((label) => label.sign === sign);
  const changed = withLabel(text, name, isOn ? 0 : sign);
  if (changed === text) {
    showMessage(`${name} is inside of parentheses or has a threshold. Change the query as text.`);
    return;
  }
  submitQuery(changed);
}

/** Show which labels the query requires or excludes, and their sums in the shown hits. */
function updateStates(text) {
  const signs = new Map(queryLabels(text).labels.map((label) => [label.name, label.sign]));
  for (const chip of [...queryList.children, ...list.children]) {
    const name = chip.dataset.label;
    const sign = signs.get(name) ?? 0;
    chip.classList.toggle("is-wanted", sign > 0);
    chip.classList.toggle("is-excluded", sign < 0);
    for (const button of chip.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.sign) === sign));
    }
    const sum = shownSums.get(name);
    const shown = chip.querySelector(".chip-shown");
    const isShown = sign !== 0 && sum !== undefined && chip.parentElement === queryList;
    const text = () => `≈ ${formatExpected(sum)} in the first ${countOf(nShown, "hit")}`;
    shown.textContent = isShown ? text() : "";
  }
}
