/** Keep the state of the page in the fragment of the address, such as "#search?q=lion&min=0.3". */

export const TABS = ["search", "check", "proposals", "tag", "about"];
const EMPTY = { tab: "search", q: "", min: 0, image: null };
const listeners = [];
let current = null;

/** Return the state of a fragment: tab, query, minimum probability and opened image. */
export function parseFragment(fragment) {
  const [tab, query = ""] = fragment.replace(/^#/, "").split(/\?(.*)/s);
  const values = new URLSearchParams(query);
  const min = Number(values.get("min") ?? 0);
  return {
    tab: TABS.includes(tab) ? tab : "search",
    q: values.get("q") ?? "",
    min: Number.isFinite(min) ? Math.max(0, Math.min(1, min)) : 0,
    image: values.get("image") || null,
  };
}

/** Return the fragment of a state. */
export function formatFragment({ tab, q, min, image }) {
  const values = new URLSearchParams();
  if (q) values.set("q", q);
  if (min > 0) values.set("min", min.toFixed(2));
  if (image) values.set("image", image);
  const query = values.toString();
  return `#${tab}${query ? `?${query}` : ""}`;
}

/** Return the current state. */
export function locationState() {
  return current ?? EMPTY;
}

/**
 * Change parts of the state, and call the listeners.
 * @param {object} changes New values by name.
 * @param {boolean} isReplaced Whether the current entry of the history is replaced.
 */
export function changeLocation(changes, isReplaced = false) {
  const fragment = formatFragment({ ...locationState(), ...changes });
  if (fragment !== location.hash) {
    const isOpened = Boolean(changes.image) && (!isReplaced || Boolean(history.state?.isOpened));
    const entry = { isOpened };
    if (isReplaced) history.replaceState(entry, "", fragment);
    else history.pushState(entry, "", fragment);
  }
  notify();
}

/** Close the opened image: go back, if it was opened from this page. */
export function closeLocationImage() {
  if (!locationState().image) return;
  if (history.state?.isOpened) history.back();
  else changeLocation({ image: null }, true);
}

/** Call a function with each new state and the state before it (null at first). */
export function onLocationChange(listener) {
  listeners.push(listener);
}

/** Read the address, and call the listeners from now on. */
export function startLocation() {
  addEventListener("hashchange", notify);
  addEventListener("popstate", notify);
  notify();
}

function notify() {
  const state = parseFragment(location.hash);
  const previous = current;
  if (previous && formatFragment(previous) === formatFragment(state)) return;
  current = state;
  for (const listener of listeners) listener(state, previous);
}
