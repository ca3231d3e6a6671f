/** Request the hits of a search page by page, and keep only the pages near the shown hits. */

import { getJson, isAborted } from "./api.js";

export const PAGE_SIZE = 100;
const MAX_PAGES = 30;
const RETRY = 4000; // milliseconds until a page that failed is requested again

export class ResultPages {
  /**
   * @param {string} query Query.
   * @param {number} minimum Minimum probability.
   * @param {{onPage: Function, onError: Function}} listeners `onPage` is called with the number of
   *   a page and its response, and `onError` with an error and the number of its page.
   */
  constructor(query, minimum, { onPage, onError }) {
    Object.assign(this, { query, minimum, onPage, onError });
    this.pages = new Map(); // in the order of their last use
    this.requests = new Map();
    this.failures = new Map();
    this.known = 0; // hits that certainly exist
    this.total = null; // number of hits, if the last page was read
  }

  /** Return a hit, or undefined if its page is not loaded. */
  hit(index) {
    return this.pages.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE];
  }

  /** Return a hit after its page was loaded, or null after the last hit. */
  async hitWhenLoaded(index) {
    if (index < 0 || (this.total !== null && index >= this.total)) return null;
    await this.load(Math.floor(index / PAGE_SIZE), true);
    return this.hit(index) ?? null;
  }

  /** Request the pages of a range of hits, and abort the requests of other pages. */
  requireRange(first, last) {
    const pages = [Math.floor(Math.max(0, first) / PAGE_SIZE), Math.floor(last / PAGE_SIZE)];
    for (const [page, request] of this.requests) {
      const isNear = page >= pages[0] - 1 && page <= pages[1] + 1;
      if (!isNear && !request.isAwaited) request.abort.abort();
    }
    for (let page = pages[0]; page <= pages[1]; page += 1) {
      if (this.total === null || page * PAGE_SIZE < this.total) this.load(page);
    }
  }

  /**
   * Request a page, unless it is loaded; the result is complete when the page is loaded.
   * @param {number} page Number of the page.
   * @param {boolean} isAwaited Whether the request continues if the page is not near the visible
   *   part.
   */
  load(page, isAwaited = false) {
    const loaded = this.pages.get(page);
    if (loaded) {
      this.pages.delete(page);
      this.pages.set(page, loaded);
      return Promise.resolve();
    }
    const failed = this.failures.get(page);
    if (failed && Date.now() - failed < RETRY) return Promise.resolve();
    const running = this.requests.get(page);
    if (running && !running.abort.signal.aborted) {
      running.isAwaited ||= isAwaited;
      return running.done;
    }
    const abort = new AbortController();
    const done = this.request(page, abort.signal);
    this.requests.set(page, { abort, done, isAwaited });
    return done;
  }

  /** Abort all requests. */
  abort() {
    for (const { abort } of this.requests.values()) abort.abort();
  }

  async request(page, signal) {
    const values = { q: this.query, offset: page * PAGE_SIZE, limit: PAGE_SIZE };
    if (this.minimum > 0) values.min_probability = this.minimum;
    try {
      const response = await getJson("search", values, signal);
      this.failures.delete(page);
      this.add(page, response);
      this.onPage(page, response);
    } catch (error) {
      if (isAborted(error)) return;
      this.failures.set(page, Date.now());
      this.onError(error, page);
    } finally {
      if (this.requests.get(page)?.abort.signal === signal) this.requests.delete(page);
    }
  }

  add(page, { hits, next_offset: next }) {
    const end = page * PAGE_SIZE + hits.length;
    if (hits.length) this.known = Math.max(this.known, end);
    // an empty page after a jump states only that there are fewer hits
    if (next === null && (hits.length || end === this.known)) this.total = end;
    this.pages.set(page, hits);
    for (const old of this.pages.keys()) {
      if (this.pages.size <= MAX_PAGES) break;
      this.pages.delete(old);
    }
  }
}
