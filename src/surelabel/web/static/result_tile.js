/** Create the tile of a hit: thumbnail, name, probability, and buttons for right and wrong. */

import { imageAddress } from "./api.js";
import { recentTargets } from "./corrections.js";
import { element, probabilityBar } from "./elements.js";
import { fileName, formatNumber, formatPercent } from "./number_format.js";

/**
 * Return the tile of a hit.
 * @param {object} hit Hit of a search.
 * @param {{hasProbability: boolean, open: Function, mark: Function}} options `open` shows the
 *   image, and `mark` is called with true (right) or false (wrong).
 */
export function createResultTile(hit, { hasProbability, open, mark }) {
  const name = fileName(hit.path);
  const description = describeHit(hit, hasProbability);
  const tile = element("article", {
    class: "tile",
    "aria-label": `${name}. ${description}`,
    title: `${hit.path}\n${description}`,
  });
  const button = element(
    "button",
    { class: "tile-image", "aria-label": `Open ${name}`, click: open },
    element("img", {
      src: imageAddress(hit.id, "thumbnail", { size: 256 }),
      alt: `${name}. ${description}`,
      loading: "lazy",
      decoding: "async",
    }),
  );
  const value = hasProbability ? formatPercent(hit.probability) : formatSimilarity(hit);
  const targets = recentTargets(hit.id);
  const caption = element(
    "div",
    { class: "tile-caption" },
    element(
      "div",
      { class: "tile-text" },
      element("span", { class: "tile-value" }, value),
      element("span", { class: "tile-name" }, name),
    ),
    markButton("✓", `Right: ${name}`, "is-right", () => mark(true)),
    markButton("✗", `Wrong: ${name}`, "is-wrong", () => mark(false)),
  );
  tile.append(button, hasProbability ? probabilityBar(hit.probability) : "", caption);
  if (targets) {
    tile.classList.add("is-corrected");
    tile.append(element("span", { class: "badge" }, badgeText(targets)));
  }
  return tile;
}

/** Return the tile of a hit that is not loaded. */
export function createEmptyTile() {
  return element("article", { class: "tile is-loading", "aria-label": "The image is loading." });
}

/** Return the probabilities of the terms of a hit as text. */
export function describeHit(hit, hasProbability = true) {
  const parts = hasProbability ? [`Probability ${formatPercent(hit.probability)}`] : [];
  for (const [term, probability] of Object.entries(hit.terms ?? {})) {
    parts.push(`${term} ${formatPercent(probability)}`);
  }
  for (const [term, value] of Object.entries(hit.uncertainties ?? {})) {
    parts.push(`uncertainty of ${term} ${formatNumber(value)}`);
  }
  if (hit.similarity !== undefined) parts.push(`similarity ${formatSimilarity(hit)}`);
  return parts.length ? `${parts.join(", ")}.` : "";
}

function formatSimilarity(hit) {
  return hit.similarity === undefined ? "" : hit.similarity.toFixed(3);
}

function markButton(text, label, kind, click) {
  const listener = (event) => {
    event.stopPropagation();
    click();
  };
  const attributes = { class: `mark ${kind}`, "aria-label": label, title: label };
  return element("button", { ...attributes, click: listener }, text);
}

function badgeText(targets) {
  const values = Object.values(targets);
  if (values.length !== 1) return `${values.length} labels corrected`;
  const [[label, target]] = Object.entries(targets);
  return `${label}: ${target === null ? "unknown" : target ? "positive" : "negative"}`;
}
