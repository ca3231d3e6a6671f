/** Show proposals: images to label next, and corrected targets that are probably wrong. */

import { getJson, imageAddress } from "./api.js";
import { correctLabels, onCorrection, recentTargets, TARGET_TEXTS } from "./corrections.js";
import { element } from "./elements.js";
import { openImageView, showImageSequence } from "./image_view.js";
import { showError } from "./messages.js";
import { fileName, formatPercent } from "./number_format.js";

const COUNT = 24;
const lists = new Map();

/** Connect the buttons of both lists. */
export function startProposals() {
  for (const section of document.querySelectorAll("[data-kind]")) {
    const { kind } = section.dataset;
    lists.set(kind, { section, images: null });
    section.querySelector("[data-refresh]").addEventListener("click", () => refresh(kind));
  }
  onCorrection((image) => {
    for (const tile of document.querySelectorAll("[data-proposal]")) {
      if (tile.dataset.proposal === image) showTargets(tile, recentTargets(image));
    }
  });
}

/** Request both lists, if this was not done. */
export function showProposals() {
  for (const [kind, { images }] of lists) {
    if (images === null) refresh(kind);
  }
}

/** Mark the tile of an image that was corrected since the page was loaded. */
function showTargets(tile, targets) {
  tile.classList.toggle("is-corrected", targets !== null);
  const state = tile.querySelector("[data-label]");
  if (!state) return;
  const isCorrected = targets !== null && Object.hasOwn(targets, state.dataset.label);
  const target = isCorrected ? TARGET_TEXTS.get(targets[state.dataset.label]) : null;
  state.textContent = isCorrected ? `Corrected: ${target}` : "";
}

async function refresh(kind) {
  const list = lists.get(kind);
  const sentence = list.section.querySelector("[data-sentence]");
  const button = list.section.querySelector("[data-refresh]");
  button.disabled = true;
  sentence.textContent = "The proposals are being computed.";
  list.images = [];
  try {
    const content = await getJson("proposals", { kind, count: COUNT });
    list.images = content.images;
    sentence.textContent = content.sentence;
  } catch (error) {
    list.images = null;
    sentence.textContent = "";
    showError(error);
  }
  button.disabled = false;
  const tiles = (list.images ?? []).map((image, index) => createTile(kind, image, index));
  list.section.querySelector("[data-images]").replaceChildren(...tiles);
}

function createTile(kind, image, index) {
  const name = fileName(image.path);
  const open = () => {
    showImageSequence({
      at: (position) => Promise.resolve(lists.get(kind).images?.[position] ?? null),
      index,
      origin: (position) => ({ chosen_by: kind, query: null, rank: position }),
      onLeave: (position) => focusTile(kind, position),
    });
    openImageView(image.id);
  };
  const thumbnail = element("img", {
    src: imageAddress(image.id, "thumbnail", { size: 256 }),
    alt: `${name}. ${image.reason}`,
    loading: "lazy",
  });
  const attributes = { class: "tile-image", "aria-label": `Open ${name}`, click: open };
  const tile = element(
    "li",
    { class: "tile", "data-proposal": image.id },
    element("button", attributes, thumbnail),
    element("p", { class: "tile-name" }, name),
  );
  if (kind === "audit") tile.append(...auditButtons(image, name, index));
  return tile;
}

/** Return the description of a doubtful target, and buttons that change or confirm it. */
function auditButtons({ id, label, target, reason, error_probability: error }, name, index) {
  const origin = { chosen_by: "audit", query: null, rank: index };
  const correct = (value) => () => correctLabels({ id, name }, { [label]: value }, origin);
  const [current, other] = [TARGET_TEXTS.get(target), TARGET_TEXTS.get(1 - target)];
  const probability = `The target is wrong with a probability of ${formatPercent(error)}.`;
  const button = (verb, value, word) => {
    const attributes = { "aria-label": `${name}: ${label} is ${word}`, click: correct(value) };
    return element("button", attributes, `${verb} ${word}`);
  };
  return [
    element("p", { class: "small" }, element("strong", {}, label), `: ${reason} ${probability}`),
    element(
      "div",
      { class: "actions" },
      button("Make", 1 - target, other),
      button("Keep", target, current),
    ),
    element("p", { class: "row-target", "data-label": label, "aria-live": "polite" }),
  ];
}

function focusTile(kind, position) {
  const tiles = lists.get(kind).section.querySelectorAll(".tile-image");
  tiles[position]?.focus();
}
