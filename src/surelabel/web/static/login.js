/** Send the token of the login form. A browser with a valid cookie is sent to the page. */

import { byId } from "./elements.js";

const form = byId("login");

function openPage() {
  location.replace(`/${location.hash}`);
}

async function logIn(event) {
  event.preventDefault();
  const error = byId("login-error");
  error.textContent = "";
  try {
    const response = await fetch("/api/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token: byId("token").value.trim() }),
    });
    if (response.ok) return openPage();
    error.textContent = (await response.json()).error;
  } catch {
    error.textContent = "The server does not answer. Check that it runs, and log in again.";
  }
  byId("token").setAttribute("aria-invalid", "true");
  byId("token").focus();
}

if (form) {
  form.addEventListener("submit", logIn);
  byId("login-expired").hidden = !new URLSearchParams(location.search).has("expired");
  // the cookie is not sent if another site links to the page
  fetch("/api/health").then((response) => response.ok && openPage(), () => {});
}
