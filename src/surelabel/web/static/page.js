/** Start the page: show the tab of the address, and follow its changes. */

import { hideAbout, showAbout, startAbout } from "./about.js";
import { startCheck } from "./check.js";
import { byId } from "./elements.js";
import { followLocationImage, startImageView } from "./image_view.js";
import { startLabelChips } from "./label_chips.js";
import { changeLocation, onLocationChange, startLocation } from "./location_state.js";
import { showError } from "./messages.js";
import { showProposals, startProposals } from "./proposals.js";
import { startQueryBox } from "./query_box.js";
import { refreshRecalibration, startRecalibration } from "./recalibration.js";
import { showSearch, startSearch } from "./search.js";
import { showUpload, startUpload } from "./upload.js";

const NAME = document.title; // of the index and the program

const SHOW = {
  search: showSearch,
  check: () => refreshRecalibration().catch(showError),
  proposals: showProposals,
  tag: () => showUpload().catch(showError),
  about: showAbout,
};

function showTab(tab) {
  for (const panel of document.querySelectorAll("[data-panel]")) {
    panel.hidden = panel.dataset.panel !== tab;
  }
  for (const link of document.querySelectorAll("[data-tab]")) {
    if (link.dataset.tab === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Name the query or the tab in the title, which bookmarks and the history show. */
function showTitle({ tab, q }) {
  const link = document.querySelector(`[data-tab="${tab}"]`);
  const name = tab === "search" ? q : link.textContent.trim().replace(/\s+/g, " ");
  document.title = name ? `${name} – ${NAME}` : NAME;
}

function followLocation(state, previous) {
  const isNewTab = state.tab !== previous?.tab;
  showTitle(state);
  if (isNewTab) {
    showTab(state.tab);
    if (previous) scrollTo({ top: 0 });
    hideAbout();
  }
  const isOtherSearch = state.q !== previous?.q || state.min !== previous?.min;
  const isNewSearch = state.tab === "search" && isOtherSearch;
  if (isNewTab || isNewSearch) SHOW[state.tab](state);
  followLocationImage(state);
}

function openTab(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  changeLocation({ tab: event.currentTarget.dataset.tab, image: null });
}

for (const link of document.querySelectorAll("[data-tab]")) link.addEventListener("click", openTab);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment of the address is the state of the page
  byId("content").focus();
});
addEventListener("error", (event) => showError(event.error ?? new Error(event.message)));
addEventListener("unhandledrejection", (event) => showError(event.reason));

startLabelChips();
startQueryBox();
startSearch();
startImageView();
startCheck();
startRecalibration();
startProposals();
startUpload();
startAbout();
onLocationChange(followLocation);
startLocation();
