/** The text field of the query, its completion, its errors, and the minimum probability. */

import { byId, debounce, element } from "./elements.js";
import { LabelCompletion } from "./label_completion.js";
import { changeLocation, locationState } from "./location_state.js";
import { labelAtCursor, quoteLabel, textPosition } from "./query_language.js";

const SLIDER_DELAY = 180; // milliseconds
const EXCERPT = 32; // characters before and after a wrong character

const input = byId("query");
const slider = byId("min-probability");
const changeListeners = [];
const repeatListeners = [];

/** Connect the form of the query with the address of the page. */
export function startQueryBox() {
  byId("query-form").addEventListener("submit", (event) => {
    event.preventDefault();
    completion.close();
    submitQuery(input.value);
  });
  input.addEventListener("input", () => {
    hideQueryError();
    notifyChange();
  });
  const search = debounce(() => {
    changeLocation({ min: Number(slider.value), q: input.value.trim() }, true);
  }, SLIDER_DELAY);
  slider.addEventListener("input", () => {
    showMinimum(Number(slider.value));
    search();
  });
}

/** Search for a query; the address of the page changes, unless the search is repeated. */
export function submitQuery(text) {
  const isRepeated = text.trim() === locationState().q;
  changeLocation({ tab: "search", q: text.trim(), image: null });
  if (isRepeated) for (const listener of repeatListeners) listener();
}

/** Call a function when the query of the address is submitted again. */
export function onRepeatedQuery(listener) {
  repeatListeners.push(listener);
}

/** Return the text of the query, which can differ from the query of the last search. */
export function queryText() {
  return input.value;
}

/** Call a function after each change of the text. */
export function onQueryText(listener) {
  changeListeners.push(listener);
}

/** Show the query and the minimum probability of the address. */
export function showQuery({ q, min }) {
  if (input.value.trim() !== q) input.value = q;
  slider.value = String(min);
  showMinimum(min);
  notifyChange();
}

/** Show an error of the query below the text field, and mark the wrong character. */
export function showQueryError({ message, position }) {
  const text = locationState().q;
  const parts = [element("p", { class: "error" }, message)];
  if (position !== null) {
    const start = textPosition(text, position);
    const wrong = Array.from(text.slice(start))[0] ?? "␣"; // the query ends too early
    const before = text.slice(Math.max(0, start - EXCERPT), start);
    const after = text.slice(start + wrong.length, start + wrong.length + EXCERPT);
    const mark = element("mark", {}, wrong);
    const excerpt = element("code", { class: "excerpt" }, before, mark, after);
    parts.push(excerpt);
  }
  input.setAttribute("aria-invalid", "true");
  byId("query-error").replaceChildren(...parts);
}

/** Remove the error of the query. */
export function hideQueryError() {
  input.removeAttribute("aria-invalid");
  byId("query-error").replaceChildren();
}

const completion = new LabelCompletion(input, byId("query-options"), labelAtCursor, insertLabel);

function insertLabel(name, { start, end }) {
  const label = quoteLabel(name);
  input.value = input.value.slice(0, start) + label + input.value.slice(end);
  input.setSelectionRange(start + label.length, start + label.length);
  input.focus();
  notifyChange();
}

function showMinimum(probability) {
  byId("min-probability-output").textContent = `${Math.round(probability * 100)} %`;
}

function notifyChange() {
  for (const listener of changeListeners) listener(input.value);
}
