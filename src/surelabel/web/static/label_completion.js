/** Complete labels in a text field: an ARIA combobox with a list of options. */

import { getJson } from "./api.js";
import { debounce, element } from "./elements.js";
import { formatExpected } from "./number_format.js";

const N_OPTIONS = 8;
const N_CANDIDATES = 200;
const DELAY = 90; // milliseconds without a key before labels are requested

export class LabelCompletion {
  /**
   * @param {HTMLInputElement} input Text field.
   * @param {HTMLElement} list Element of the options.
   * @param {Function} fragmentAt Function that returns the part of the text before a cursor that is
   *   completed, with `prefix`, `start` and `end`, or null.
   * @param {(name: string, fragment: object) => void} accept Function that inserts a label.
   */
  constructor(input, list, fragmentAt, accept) {
    Object.assign(this, { input, list, fragmentAt, accept });
    this.names = [];
    this.active = -1;
    this.fragment = null;
    this.request = null;
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", list.id);
    input.setAttribute("aria-expanded", "false");
    input.addEventListener("input", debounce(() => this.update(), DELAY));
    input.addEventListener("keydown", (event) => this.handleKey(event));
    input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** Request the labels that begin with the text at the cursor, and show them. */
  async update() {
    this.request?.abort();
    this.fragment = this.fragmentAt(this.input.value, this.input.selectionStart ?? 0);
    if (!this.fragment?.prefix.trim() || document.activeElement !== this.input) return this.close();
    this.request = new AbortController();
    const values = { prefix: this.fragment.prefix.trim(), limit: N_CANDIDATES };
    try {
      const { labels } = await getJson("labels", values, this.request.signal);
      labels.sort((a, b) => (b.expected_images ?? 0) - (a.expected_images ?? 0));
      this.show(labels.slice(0, N_OPTIONS));
    } catch {
      this.close(); // the completion is optional, and the search shows errors
    }
  }

  show(labels) {
    const isComplete = labels.length === 1 && labels[0].name === this.fragment.prefix.trim();
    if (!labels.length || isComplete || document.activeElement !== this.input) return this.close();
    this.names = labels.map((label) => label.name);
    this.list.replaceChildren(...labels.map((label, index) => this.createOption(label, index)));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.select(-1);
  }

  createOption({ name, expected_images: expected }, index) {
    const accept = (event) => {
      event.preventDefault(); // the text field keeps the focus
      this.insert(index);
    };
    const attributes = { role: "option", id: `${this.list.id}-${index}`, "aria-selected": "false" };
    const count = expected === null ? "" : `≈ ${formatExpected(expected)}`;
    return element(
      "li",
      { ...attributes, mousedown: accept },
      element("span", {}, name),
      element("span", { class: "soft" }, count),
    );
  }

  close() {
    this.request?.abort();
    this.list.hidden = true;
    this.list.replaceChildren();
    this.input.setAttribute("aria-expanded", "false");
    this.select(-1);
  }

  select(index) {
    this.active = index;
    [...this.list.children].forEach((option, number) => {
      option.setAttribute("aria-selected", String(number === index));
    });
    const option = this.list.children[index];
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  insert(index) {
    const name = this.names[index];
    const fragment = this.fragment;
    this.close();
    this.accept(name, fragment);
  }

  handleKey(event) {
    if (event.key === "ArrowDown" && !this.isOpen) this.update();
    if (!this.isOpen) return;
    const n = this.names.length;
    if (event.key === "ArrowDown") this.select((this.active + 1) % n);
    else if (event.key === "ArrowUp") this.select((this.active - 1 + n) % n);
    else if (event.key === "Escape") this.close();
    else if ((event.key === "Enter" || event.key === "Tab") && this.active >= 0) {
      this.insert(this.active);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
