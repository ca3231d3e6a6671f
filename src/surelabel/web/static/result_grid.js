/** Show the hits of a search in a grid that contains only the tiles near the visible part. */

import { debounce } from "./elements.js";
import { PAGE_SIZE } from "./result_pages.js";

const GAP = 14; // pixels between tiles
const CAPTION = 62; // height of the text below an image
const WIDTH = { wide: 190, narrow: 150 }; // minimum width of a tile
const EXTRA_ROWS = 2; // rows before and after the visible part
const MAX_ROWS = 20_000; // browsers limit the height of an element
const SCROLL_DELAY = 70; // milliseconds without scrolling before pages are requested

export class ResultGrid {
  /**
   * @param {HTMLElement} container Element of the grid, which scrolls with the page.
   * @param {{createTile: Function, createEmptyTile: Function, onKey: Function}} parts Functions
   *   that create the tile of a hit, create a tile without a hit, and handle the keys of a tile.
   */
  constructor(container, { createTile, createEmptyTile, onKey }) {
    Object.assign(this, { container, createTile, createEmptyTile, onKey });
    this.pages = null;
    this.tiles = new Map(); // by number of the hit
    this.active = 0;
    this.baseRow = 0; // first row of the scrollable part
    this.requestVisible = debounce(() => this.requirePages(), SCROLL_DELAY);
    addEventListener("scroll", () => this.render(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(container);
    container.addEventListener("keydown", (event) => this.handleKey(event));
    container.addEventListener("focusin", (event) => this.handleFocus(event));
  }

  /** Show the hits of a new search. */
  reset(pages) {
    this.pages = pages;
    [this.active, this.baseRow] = [0, 0];
    this.container.hidden = pages.total === 0;
    this.clear();
    this.resize();
  }

  /** Create the tiles of a loaded page. */
  showPage(page) {
    const first = page * PAGE_SIZE;
    for (const index of [...this.tiles.keys()]) {
      if (index >= first && index < first + PAGE_SIZE) this.replaceTile(index);
    }
    this.updateHeight();
    this.render();
  }

  /** Create the tile of a hit again, if it is shown. */
  replaceTile(index) {
    const old = this.tiles.get(index);
    if (!old) return;
    const hadFocus = old.contains(document.activeElement);
    const tile = this.placeTile(index);
    old.replaceWith(tile);
    if (hadFocus) tile.focus({ preventScroll: true });
  }

  /** Scroll to a hit, and move the focus to it. */
  focusHit(index) {
    this.active = Math.max(0, Math.min(index, this.nHits - 1));
    this.scrollToHit(this.active);
    for (const [number, tile] of this.tiles) this.setActive(tile, number === this.active);
    this.tiles.get(this.active)?.focus({ preventScroll: true });
  }

  /** Scroll to a hit, which can be beyond the loaded pages. */
  scrollToHit(index) {
    const row = Math.floor(index / this.columns);
    if (row < this.baseRow || row >= this.baseRow + MAX_ROWS) {
      this.baseRow = row > MAX_ROWS / 2 ? row - Math.floor(MAX_ROWS / 2) : 0;
      this.clear();
    }
    this.updateHeight();
    const top = this.top + (row - this.baseRow) * this.rowHeight;
    const covered = document.querySelector(".query-bar").offsetHeight + GAP;
    const isVisible =
      top >= scrollY + covered && top + this.rowHeight <= scrollY + innerHeight;
    if (!isVisible) scrollTo({ top: Math.max(0, top - covered) });
    this.render();
  }

  /** Return the number of hits for which there is space. */
  get nHits() {
    const { total, known } = this.pages;
    return total ?? Math.max(known, this.reserved ?? 0) + PAGE_SIZE;
  }

  /** Reserve space for hits that are not known yet, for a jump. */
  reserve(nHits) {
    this.reserved = nHits;
  }

  get top() {
    return this.container.getBoundingClientRect().top + scrollY;
  }

  resize() {
    const width = this.container.clientWidth;
    if (!width || !this.pages) return; // the tab is hidden
    const minimum = width < 560 ? WIDTH.narrow : WIDTH.wide;
    const columns = Math.max(1, Math.floor((width + GAP) / (minimum + GAP)));
    if (width === this.width && columns === this.columns && this.tiles.size) return;
    const firstHit = this.columns ? this.firstRow * this.columns : 0;
    const isNewLayout = columns !== this.columns && this.columns;
    Object.assign(this, { width, columns });
    this.tileWidth = (width - GAP * (columns - 1)) / columns;
    this.rowHeight = this.tileWidth + CAPTION + GAP;
    this.clear();
    this.updateHeight();
    if (isNewLayout && firstHit > 0) this.scrollToHit(firstHit);
    this.render();
  }

  get firstRow() {
    const row = Math.floor((scrollY - this.top) / this.rowHeight);
    return this.baseRow + Math.max(0, row);
  }

  clear() {
    this.container.replaceChildren();
    this.tiles.clear();
  }

  updateHeight() {
    const rows = Math.ceil(this.nHits / this.columns) - this.baseRow;
    this.container.style.height = `${Math.max(0, Math.min(rows, MAX_ROWS)) * this.rowHeight}px`;
  }

  /** Create the tiles near the visible part, and remove the others. */
  render() {
    if (!this.pages || !this.container.clientWidth) return;
    this.moveBaseRow();
    const nRows = Math.ceil(innerHeight / this.rowHeight);
    const first = Math.max(this.baseRow, this.firstRow - EXTRA_ROWS) * this.columns;
    const end = Math.min(this.nHits, (this.firstRow + nRows + EXTRA_ROWS + 1) * this.columns);
    for (const [index, tile] of this.tiles) {
      const isOutside = index < first || index >= end;
      if (isOutside && !tile.contains(document.activeElement)) {
        tile.remove();
        this.tiles.delete(index);
      }
    }
    for (let index = first; index < end; index += 1) {
      if (!this.tiles.has(index)) this.insertTile(index);
    }
    [this.first, this.last] = [first, end - 1];
    this.requestVisible();
  }

  requirePages() {
    if (this.pages && this.last >= this.first) this.pages.requireRange(this.first, this.last);
  }

  /** Move the scrollable part, if the visible part is near one of its ends. */
  moveBaseRow() {
    const row = this.firstRow - this.baseRow;
    const nRows = Math.ceil(this.nHits / this.columns);
    let shift = 0;
    if (row > 0.8 * MAX_ROWS && nRows > this.baseRow + MAX_ROWS) shift = MAX_ROWS / 2;
    if (row < 0.1 * MAX_ROWS && this.baseRow > 0) shift = -Math.min(this.baseRow, MAX_ROWS / 2);
    if (!shift) return;
    this.baseRow += shift;
    this.clear();
    this.updateHeight();
    scrollBy(0, -shift * this.rowHeight);
  }

  insertTile(index) {
    const tile = this.placeTile(index);
    const next = [...this.tiles.keys()].find((other) => other > index);
    // the order of the elements is that of the hits, for screen readers and the tab key
    if (next === undefined) this.container.append(tile);
    else this.container.insertBefore(tile, this.tiles.get(next));
    this.tiles.set(index, tile);
    if (next !== undefined) this.tiles = new Map([...this.tiles].sort((a, b) => a[0] - b[0]));
  }

  placeTile(index) {
    const hit = this.pages.hit(index);
    const tile = hit ? this.createTile(hit, index) : this.createEmptyTile(index);
    const [row, column] = [Math.floor(index / this.columns) - this.baseRow, index % this.columns];
    tile.dataset.index = String(index);
    tile.setAttribute("aria-posinset", String(index + 1));
    tile.setAttribute("aria-setsize", String(this.pages.total ?? -1));
    tile.style.width = `${this.tileWidth}px`;
    tile.style.height = `${this.rowHeight - GAP}px`;
    const left = column * (this.tileWidth + GAP);
    tile.style.transform = `translate(${left}px, ${row * this.rowHeight}px)`;
    tile.style.setProperty("--side", `${this.tileWidth}px`);
    this.setActive(tile, index === this.active);
    if (this.tiles.has(index)) this.tiles.set(index, tile);
    return tile;
  }

  /** Make one tile and its buttons reachable by the tab key. */
  setActive(tile, isActive) {
    tile.tabIndex = isActive ? 0 : -1;
    for (const button of tile.querySelectorAll("button")) button.tabIndex = isActive ? 0 : -1;
  }

  handleFocus(event) {
    const tile = event.target.closest("[data-index]");
    if (!tile) return;
    this.active = Number(tile.dataset.index);
    for (const [number, other] of this.tiles) this.setActive(other, number === this.active);
  }

  handleKey(event) {
    const index = Number(event.target.closest("[data-index]")?.dataset.index);
    if (Number.isNaN(index) || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
    const step = steps[event.key];
    if (step !== undefined) {
      const target = index + step;
      const isKnown = target >= 0 && target < (this.pages.total ?? this.nHits);
      if (isKnown) this.focusHit(target);
      event.preventDefault();
    } else if (event.key === "Home") {
      this.focusHit(0);
      event.preventDefault();
    } else if (this.pages.hit(index)) this.onKey(event, this.pages.hit(index), index);
  }
}
