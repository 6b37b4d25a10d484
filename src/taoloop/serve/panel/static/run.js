// The page of one run: steps by keyboard, following the end, and printing all of it. Without it everything still works.
"use strict";

(() => {
  // Parts of the page that are not on its first screen are asked for once that is painted: both take the same processor.
  document.addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(() => {
    document.body.dispatchEvent(new CustomEvent("painted"));
  })));

  const step = document.getElementById("step");
  // Shows an entry; where its part is not loaded yet, once it is. Parts that are loaded meanwhile change their height, so
  // the entry is shown again after each of them, until the reader takes over.
  let wanted = null;
  function show(seq) {
    document.querySelector(".entry.current")?.classList.remove("current");
    wanted = seq;
    setTimeout(() => { if (wanted === seq) wanted = null; }, 3000);
    scroll();
  }
  function scroll() {
    const entry = document.getElementById(`e-${wanted}`);
    if (entry) {
      entry.classList.add("current");
      const box = entry.getBoundingClientRect();
      if (box.top < 0 || box.top > innerHeight * 0.7) entry.scrollIntoView({block: "start", behavior: "instant"});
      return;
    }
    const parts = [...document.querySelectorAll(".events[data-first]")].filter((part) => Number(part.dataset.first) <= wanted);
    const part = parts.at(-1);
    part?.scrollIntoView({block: "start", behavior: "instant"});
    if (part && part.dataset.last && part.dataset.asked !== String(wanted)) { // a chapter: with the entry at once
      part.dataset.asked = wanted;
      htmx.ajax("GET", `${part.getAttribute("hx-get")}&seq=${wanted}`, {source: part, target: part, swap: "outerHTML"});
    }
  }
  document.addEventListener("htmx:after:swap", () => { if (wanted !== null) scroll(); });
  for (const name of ["wheel", "touchmove", "pointerdown"]) {
    document.addEventListener(name, () => { wanted = null; }, {passive: true});
  }

  // The chosen step is in the address, and the transcript follows it.
  function choose(number) {
    step.value = number;
    document.getElementById("step-number").textContent = step.value;
    htmx.trigger(step, "step-chosen");
  }
  function write() {
    const address = new URL(location.href);
    address.searchParams.delete("seq");
    address.searchParams.set("step", step.value);
    address.hash = "";
    history.replaceState(history.state, "", address);
  }
  if (step) {
    step.addEventListener("input", () => { document.getElementById("step-number").textContent = step.value; });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-step]");
      if (button) choose(Number(step.value) + Number(button.dataset.step));
    });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("textarea, select, input:not([type=range])")) return;
      if (event.key === "j" || event.key === "k") choose(Number(step.value) + (event.key === "j" ? 1 : -1));
    });
    document.addEventListener("htmx:after:swap", () => {
      const state = document.querySelector("#state .state");
      if (!state || state.dataset.shown) return;
      state.dataset.shown = "true";
      if (new URLSearchParams(location.search).get("step") === state.dataset.step) return;
      write();
      show(Number(state.dataset.seq));
    });
  }

  // A bar of the timeline leads to its entry without loading the page again.
  document.addEventListener("click", (event) => {
    const bar = event.target.closest("a[data-seq]");
    if (!bar || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(Number(bar.dataset.seq));
  });

  // Who has scrolled to the end of a run stays there while it grows.
  let isAtEnd = false;
  document.addEventListener("scroll", () => {
    const tail = document.getElementById("tail");
    isAtEnd = scrollY > 0 && Boolean(tail) && tail.getBoundingClientRect().top < innerHeight + 120;
  }, {passive: true});
  document.addEventListener("htmx:after:swap", () => {
    if (isAtEnd && wanted === null) document.getElementById("tail")?.scrollIntoView({block: "end", behavior: "instant"});
  });

  // Prints the whole transcript: parts that were not looked at are loaded first.
  document.addEventListener("click", async (event) => {
    if (!event.target.closest("[data-print]")) return;
    const load = (part) => htmx.ajax("GET", part.getAttribute("hx-get"), {source: part, target: part, swap: part.getAttribute("hx-swap") || "innerHTML"});
    for (const chapter of document.querySelectorAll(".events.chapter")) await load(chapter);
    for (const part of document.querySelectorAll(".events.waiting")) if (!part.querySelector(".entry")) await load(part);
    print();
  });
})();
