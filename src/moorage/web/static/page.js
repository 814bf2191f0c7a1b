// What pages do beyond links and forms: they copy commands, and show what changed. All
// else works without.
"use strict";

const ROOT = "/ui";
const SETTLED = 400; // ms: changes that come together are fetched together, and by all
const APART = 320; // ms: what is fetched sooner after a change may be from before it
const LATEST = 3000; // ms that a change waits at most, however many follow
const RESTS = 10; // times what fetching a page took, until it is fetched again
const LOOK = 2500; // ms between two looks at what runs: the feed tells no progress
const PAUSES = [2000, 5000, 15000, 60000]; // ms between tries to be live again

// Commands in a part of the page get a button that copies them.
function copyable(part) {
  for (const box of part.querySelectorAll(".command")) {
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
}

async function fetched(address) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    return answer.ok && !answer.redirected ? await answer.text() : null;
  } catch {
    return null; // the door is away: the next change tries again
  }
}

// Whether somebody would lose something if the live part were put in anew: what is typed,
// a choice that is open, a selection, or a refusal that was not read yet.
function disturbed(here) {
  if (!getSelection().isCollapsed || here.querySelector("[role=alert]")) return true;
  if (document.activeElement.matches("select") && here.contains(document.activeElement)) return true;
  const fields = [...here.querySelectorAll("input:not([type=checkbox]):not([type=hidden])")];
  return fields.some((one) => one.value !== one.defaultValue || one === document.activeElement);
}

// The same place in the new part: what was ticked, chosen, scrolled and focused stays so.
function kept(here) {
  const same = (one) => `${one.tagName} ${one.name || one.className} ${one.value || ""} ${one.getAttribute("href") || ""}`;
  const ticked = new Set([...here.querySelectorAll("input:checked")].map((one) => one.value));
  const chosen = new Map([...here.querySelectorAll("select")].map((one) => [one.id, one.value]));
  const scrolled = new Map([...here.querySelectorAll(".log, .wide")].map((one) => [one.className, [one.scrollTop, one.scrollLeft]]));
  const active = here.contains(document.activeElement) ? same(document.activeElement) : null;
  return () => {
    for (const one of here.querySelectorAll("input[type=checkbox]")) one.checked = ticked.has(one.value);
    for (const one of here.querySelectorAll("select")) if (chosen.has(one.id)) one.value = chosen.get(one.id);
    for (const one of here.querySelectorAll(".log, .wide")) {
      [one.scrollTop, one.scrollLeft] = scrolled.get(one.className) || [0, 0];
    }
    const again = active && [...here.querySelectorAll("a, button, input, [tabindex]")].find((one) => same(one) === active);
    if (again) again.focus();
  };
}

// Fetch the page again and put its live part in place; return whether that was possible.
async function renew() {
  const here = document.querySelector("[data-live]");
  if (!here) return true;
  if (document.hidden || disturbed(here)) return false;
  const text = await fetched(location.href);
  const page = text && new DOMParser().parseFromString(text, "text/html");
  const there = page && page.querySelector("[data-live]");
  if (!there || disturbed(here)) return false;
  const restore = kept(here);
  here.replaceChildren(...there.childNodes);
  here.toggleAttribute("data-running", there.hasAttribute("data-running"));
  copyable(here);
  restore();
  return true;
}

async function strip() {
  const place = document.querySelector("[data-strip]");
  const text = place && !document.hidden ? await fetched(`${ROOT}/strip`) : null;
  if (text === null) return;
  const found = new DOMParser().parseFromString(text, "text/html").body;
  place.replaceChildren(...found.children);
}

let waiting = 0; // the timer
let since = 0; // when the first change came that waits
let wanted = false; // whether the page shows what was
let changed = 0; // when the last change came
let rested = 0; // when it may be fetched again
async function settle() {
  since = 0;
  strip();
  if (!wanted || Date.now() < rested) return; // the next look at what runs tries again
  wanted = false;
  const began = Date.now();
  const early = began - changed < APART;
  const shown = await renew();
  wanted ||= early || !shown;
  rested = Date.now() + RESTS * (Date.now() - began);
}

function soon() {
  const now = Date.now();
  since ||= now;
  clearTimeout(waiting);
  waiting = setTimeout(settle, Math.min(SETTLED, Math.max(0, since + LATEST - now)));
}

// What was heard by the page that listens: what changed, or whether it hears at all.
function heard(told) {
  if ("live" in told) {
    const line = document.querySelector("[data-stale]");
    if (line) line.hidden = told.live;
    wanted ||= told.live; // what happened between the page and the stream is looked at
  } else {
    changed = Date.now();
    const here = document.querySelector("[data-live]");
    const live = here ? here.dataset.live.split(" ") : [];
    const jobs = told.jobs.map((number) => `job:${number}`);
    wanted ||= [...told.kinds, ...jobs].some((one) => live.includes(one));
  }
  soon();
}

// One stream a browser: whichever page has the lock listens, and tells the others.
function listen() {
  const channel = new BroadcastChannel("moorage");
  channel.addEventListener("message", (event) => heard(event.data));
  const tell = (told) => {
    channel.postMessage(told);
    heard(told);
  };
  let tries = 0;
  const connect = () => {
    const source = new EventSource(`${ROOT}/events`);
    source.addEventListener("open", () => {
      tries = 0;
      tell({ live: true });
    });
    source.addEventListener("message", (event) => tell(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return; // it connects by itself
      tell({ live: false });
      setTimeout(connect, PAUSES[Math.min(tries, PAUSES.length - 1)]);
      tries += 1;
    });
  };
  navigator.locks.request("moorage-events", () => new Promise(connect));
}

// A filter is completed as it is typed: the door says how it may go on.
function completed(input) {
  const list = document.getElementById(input.getAttribute("list"));
  let waiting = 0;
  let asked = null;
  async function offer() {
    const text = input.value;
    if (text === asked) return;
    asked = text;
    const told = await fetched(`${input.dataset.words}?${new URLSearchParams({ text })}`);
    if (told === null || input.value !== text) return;
    list.replaceChildren(...JSON.parse(told).map((one) => {
      const option = new Option(one.label, one.value);
      option.value = one.value;
      return option;
    }));
  }
  input.addEventListener("focus", offer);
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(offer, 120);
  });
}

copyable(document);
for (const input of document.querySelectorAll("[data-words]")) completed(input);
if (document.querySelector("[data-strip]")) {
  strip();
  listen();
  document.addEventListener("visibilitychange", () => document.hidden || soon());
  setInterval(() => {
    if (document.querySelector("[data-strip] *")) strip();
    if (document.querySelector("[data-running]")) wanted = true;
    if (!since && wanted) settle();
  }, LOOK);
}
