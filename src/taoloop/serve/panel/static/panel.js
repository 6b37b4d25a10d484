// What the pages of the panel need beside htmx. Without it everything still works.
"use strict";

// Times in the time zone of the browser; the server writes UTC.
const timeFormat = new Intl.DateTimeFormat(document.documentElement.lang, {dateStyle: "medium", timeStyle: "medium"});
function localiseTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    time.title = time.textContent;
    time.textContent = timeFormat.format(new Date(time.dateTime));
  }
}

// Copies the text of the element that a button names.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(() => {
    button.dataset.done = "true";
    setTimeout(() => delete button.dataset.done, 2000);
  });
});

// A menu closes by Escape, and by a click beside it.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open], details.views[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open], details.views[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// The database went away under the page, or came back; the same for the connection to the server.
const setAway = (away) => { document.getElementById("away").hidden = !away; };
document.addEventListener("journal-away", () => setAway(true));
document.addEventListener("journal-back", () => {
  setAway(false);
  document.body.dispatchEvent(new CustomEvent("grown", {bubbles: true})); // what is shown may be old
});
document.addEventListener("htmx:sse:error", () => setAway(true));
document.addEventListener("htmx:sse:after:connection", () => setAway(false));

localiseTimes(document);
// Before what is new is compared with what is shown, so that a row whose time alone would differ is left as it is.
document.addEventListener("htmx:before:swap", (event) => {
  for (const {fragment} of event.detail.tasks) if (fragment) localiseTimes(fragment);
});
