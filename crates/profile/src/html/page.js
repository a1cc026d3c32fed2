"use strict";
// Which process is shown; stacks that open where they are named. Nothing here is needed to read the page.
document.documentElement.classList.add("js");

const ready = [];
document.addEventListener("DOMContentLoaded", () => ready.forEach((start) => start()));

/** An element with attributes and children. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// One process at a time: that of the address, or the first one.
ready.push(() => {
  const processes = [...document.querySelectorAll(".process")];
  const links = [...document.querySelectorAll(".choice a")];
  if (processes.length < 2) return;
  const show = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const chosen = (target && target.closest(".process")) || processes[0];
    for (const process of processes) process.hidden = process !== chosen;
    // What was hidden had no width to be drawn in.
    for (const box of chosen.querySelectorAll(".flame")) if (box.flame) box.flame.draw();
    for (const link of links) {
      if (link.hash === "#" + chosen.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (target && target !== chosen) target.scrollIntoView();
    else scrollTo(0, 0);
  };
  addEventListener("hashchange", show);
  show();
});

// The name of a place opens its stack below it.
ready.push(() => {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.call-site");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const next = link.nextElementSibling;
    if (next && next.classList.contains("inline")) {
      next.remove();
      link.removeAttribute("aria-expanded");
      return;
    }
    const stack = document.getElementById(link.hash.slice(1));
    const frames = stack && stack.querySelector("ol");
    if (!frames) return;
    const copy = frames.cloneNode(true);
    copy.classList.add("inline");
    link.after(copy);
    link.setAttribute("aria-expanded", "true");
  });
});
