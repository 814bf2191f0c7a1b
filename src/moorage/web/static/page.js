// What pages do beyond links and forms: they copy commands, and show what changed. All
// else works without.
"use strict";

const ROOT = "/ui";
const SETTLED = 400; // ms: changes that come together are fetched together
const LOOK = 2500; // ms between two looks at what runs: the feed tells no progress

for (const box of document.querySelectorAll(".command")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(box.querySelector("code").textContent);
    button.textContent = "Copied";
  });
  box.append(button);
}

async function fetched(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  return answer.ok && !answer.redirected ? answer.text() : null;
}

// The live part of the page is fetched again and put in place; who is writing in it, or
// has text selected, is not disturbed, and what was ticked stays ticked.
async function renew() {
  const here = document.querySelector("[data-live]");
  if (!here || document.hidden || !getSelection().isCollapsed) return;
  const text = await fetched(location.href);
  const page = text && new DOMParser().parseFromString(text, "text/html");
  const there = page && page.querySelector("[data-live]");
  const writing = document.activeElement.matches("input:not([type=checkbox]), select");
  if (!there || (writing && here.contains(document.activeElement))) return;
  const ticked = new Set([...here.querySelectorAll(":checked")].map((one) => one.value));
  const focus = document.activeElement.getAttribute("href");
  here.replaceChildren(...there.childNodes);
  here.toggleAttribute("data-running", there.hasAttribute("data-running"));
  for (const one of here.querySelectorAll("input[type=checkbox]")) {
    one.checked = ticked.has(one.value);
  }
  const again = focus && [...here.querySelectorAll("a")].find((one) => one.getAttribute("href") === focus);
  if (again) again.focus();
}

async function strip() {
  const place = document.querySelector("[data-strip]");
  const text = place && !document.hidden ? await fetched(`${ROOT}/strip`) : null;
  if (text === null) return;
  const found = new DOMParser().parseFromString(text, "text/html").body;
  place.replaceChildren(...found.children);
}

let waiting = 0;
let wanted = false;
function heard(told) {
  const here = document.querySelector("[data-live]");
  const live = here ? here.dataset.live.split(" ") : [];
  const jobs = told.jobs.map((number) => `job:${number}`);
  wanted ||= [...told.kinds, ...jobs].some((one) => live.includes(one));
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    strip();
    if (wanted) renew();
    wanted = false;
  }, SETTLED);
}

// One stream a browser: whichever page has the lock listens, and tells the others.
function listen() {
  const channel = new BroadcastChannel("moorage");
  channel.addEventListener("message", (event) => heard(event.data));
  navigator.locks.request("moorage-events", () => new Promise(() => {
    const source = new EventSource(`${ROOT}/events`);
    source.addEventListener("message", (event) => {
      const told = JSON.parse(event.data);
      channel.postMessage(told);
      heard(told);
    });
  }));
}

if (document.querySelector("[data-strip]")) {
  strip();
  listen();
  setInterval(() => {
    if (document.querySelector("[data-strip] *")) strip();
    if (document.querySelector("[data-running]")) renew();
  }, LOOK);
}
