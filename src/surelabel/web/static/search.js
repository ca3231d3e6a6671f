/** Search images: connect the query, the labels, the grid and the image view. */

import { locationState } from "./location_state.js";
import { correctLabels, onCorrection, undoLastCorrection } from "./corrections.js";
import { byId, element } from "./elements.js";
import { hasImageSequence, openImageView, showImageSequence } from "./image_view.js";
import { showCountsOfHits, showLabelsOfQuery } from "./label_chips.js";
import { showError, showMessage } from "./messages.js";
import { countOf, fileName, formatCount } from "./number_format.js";
import { hideQueryError, onRepeatedQuery, showQuery, showQueryError } from "./query_box.js";
import { queryLabels } from "./query_language.js";
import { ResultGrid } from "./result_grid.js";
import { PAGE_SIZE, ResultPages } from "./result_pages.js";
import { createEmptyTile, createResultTile } from "./result_tile.js";

const NO_HIT = "No image satisfies the query. Lower the minimum probability, or remove a term.";
const ALL_IMAGES = "path:*"; // query of an empty text field
const SIMILARITY_NOTE =
  "The number of an image is its similarity to the example. A copy of the example has 1.";
const SLOW = 300; // milliseconds after which a running search is described

let pages = null;
let grid = null;

/** Prepare the grid and the field to jump to a hit. */
export function startSearch() {
  grid = new ResultGrid(byId("grid"), {
    createTile: (hit, index) =>
      createResultTile(hit, {
        hasProbability: hasProbabilities(),
        open: () => openHit(hit, index),
        mark: (isRight) => markHit(hit, index, isRight),
      }),
    createEmptyTile,
    onKey: handleTileKey,
  });
  byId("jump-form").addEventListener("submit", jump);
  byId("skip-labels").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment of the address is the state of the page
    if (pages?.known) grid.focusHit(grid.active);
  });
  onRepeatedQuery(() => {
    pages.hasFailed = true;
    showSearch(locationState());
  });
  onCorrection((image) => {
    for (const index of grid.tiles.keys()) {
      if (pages?.hit(index)?.id === image) grid.replaceTile(index);
    }
  });
}

/** Show the search of a state of the address. */
export function showSearch({ q, min }) {
  showQuery({ q, min });
  if (pages?.text === q && pages.minimum === min && !pages.hasFailed) {
    grid.resize();
    grid.render();
    return;
  }
  hideQueryError();
  showLabelsOfQuery(q);
  pages?.abort();
  pages = new ResultPages(q || ALL_IMAGES, min, { onPage: showPage, onError: showPageError });
  pages.text = q;
  grid.reserve(0);
  byId("grid").setAttribute("aria-busy", "true");
  scrollTo({ top: 0 });
  pages.load(0);
  setTimeout(describeRunningSearch, SLOW, pages);
}

function describeRunningSearch(searched) {
  const isRunning = searched === pages && !pages.known && pages.total === null;
  if (isRunning) byId("result-count").textContent = "The search is running.";
}

/** Return whether the hits have a probability other than that of filters. */
function hasProbabilities() {
  const { labels } = queryLabels(pages.text);
  return labels.length > 0 || pages.text.includes("~");
}

function showPage(page, response) {
  byId("grid").setAttribute("aria-busy", "false");
  if (page === 0) {
    grid.reset(pages);
    showCountsOfHits(response.hits);
    const notes = [...(response.notes ?? [])];
    if (response.hits[0]?.similarity !== undefined && !hasProbabilities()) {
      notes.unshift(SIMILARITY_NOTE);
    }
    byId("result-notes").replaceChildren(...notes.map((note) => element("li", {}, note)));
  }
  const isFewer = !response.hits.length && page > 0;
  if (isFewer) showMessage(`The search has fewer than ${formatCount(page * PAGE_SIZE + 1)} hits.`);
  showCount();
  grid.showPage(page);
  connectOpenedImage(page, response.hits);
}

/** Connect the image of the address with its hit, if the page was opened with this image. */
function connectOpenedImage(page, hits) {
  const { image } = locationState();
  const index = image && !hasImageSequence() ? hits.findIndex(({ id }) => id === image) : -1;
  if (index >= 0) showImageSequence(sequenceOfHits(page * PAGE_SIZE + index));
}

function showCount() {
  const { known, total, text } = pages;
  const noun = text ? "hit" : "image";
  const count = total === null ? `More than ${countOf(known, noun)}` : countOf(total, noun);
  byId("result-count").textContent = total === 0 ? NO_HIT : count;
  byId("jump-form").hidden = total !== null && total <= PAGE_SIZE;
}

function showPageError(error, page) {
  byId("grid").setAttribute("aria-busy", "false");
  if (page > 0) {
    showError(error);
    return;
  }
  byId("result-count").textContent =
    error.status === 400 ? "The query contains an error." : "The search failed. Repeat it.";
  byId("result-notes").replaceChildren();
  byId("jump-form").hidden = true;
  Object.assign(pages, { total: 0, hasFailed: true });
  grid.reset(pages);
  showCountsOfHits([]);
  if (error.status === 400) showQueryError(error);
  else showError(error);
}

async function jump(event) {
  event.preventDefault();
  const index = Math.floor(Number(byId("jump").value)) - 1;
  if (!(index >= 0)) return;
  const current = pages;
  await current.load(Math.floor(index / PAGE_SIZE), true);
  if (current !== pages || !current.hit(index)) return;
  grid.reserve(index);
  grid.focusHit(index);
}

function openHit(hit, index) {
  showImageSequence(sequenceOfHits(index));
  openImageView(hit.id);
}

function sequenceOfHits(index) {
  const current = pages;
  return {
    at: (position) => current.hitWhenLoaded(position),
    index,
    origin: (position) => originOfHit(current, position),
    onLeave: (position) => {
      if (current === pages && locationState().tab === "search") grid.focusHit(position);
    },
  };
}

function originOfHit({ text }, rank) {
  if (!text) return { chosen_by: "browse", query: null, rank: null };
  return { chosen_by: /(?:^|[\s(&])like:/i.test(text) ? "similar" : "query", query: text, rank };
}

/** Correct the labels of the query, or open the image if the query does not determine them. */
function markHit(hit, index, isRight) {
  const { labels, isConjunction } = queryLabels(pages.text);
  const isDetermined = isConjunction && labels.length && (isRight || labels.length === 1);
  if (!isDetermined) {
    openHit(hit, index);
    showMessage("The query does not determine one label. Mark each label of the image.");
    return;
  }
  const targets = labels.map(({ name, sign }) => [name, isRight === sign > 0 ? 1 : 0]);
  const image = { id: hit.id, name: fileName(hit.path) };
  correctLabels(image, Object.fromEntries(targets), originOfHit(pages, index));
}

function handleTileKey(event, hit, index) {
  const isTile = event.target.matches(".tile");
  if (event.key === "Enter" && isTile) openHit(hit, index);
  else if (event.key === "r") markHit(hit, index, true);
  else if (event.key === "w") markHit(hit, index, false);
  else if (event.key === "u") undoLastCorrection();
  else return;
  event.preventDefault();
}
