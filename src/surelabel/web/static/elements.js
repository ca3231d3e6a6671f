/** Create elements. All texts are set as text, never parsed as HTML. */

/**
 * Return a new element.
 * @param {string} tag Tag name.
 * @param {Object<string, any>} attributes Attributes. Functions are listeners; null is left out.
 * @param {...(Node|string)} children Content.
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/** Return the element with an identifier. */
export function byId(identifier) {
  return document.getElementById(identifier);
}

/** Return a function that runs another function when it was not called for some milliseconds. */
export function debounce(run, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), milliseconds);
  };
}

/**
 * Return a bar for a probability, which only repeats a number and is hidden from screen readers.
 * @param {number} probability Probability in [0, 1].
 */
export function probabilityBar(probability) {
  const fill = element("span");
  fill.style.width = `${Math.max(0, Math.min(1, probability)) * 100}%`;
  return element("span", { class: "bar", "aria-hidden": "true" }, fill);
}
