// A guest's serial console. What the guest says is shown, and does nothing else: it has no
// title, link, colour scheme or clipboard, and nothing of it is answered.

import { Terminal } from "./xterm-6.0.0/lib/xterm.mjs";
import { page, whenAsked } from "./line.js";

// The terminal writes styles as elements and attributes, which the policy of content refuses
// to whoever could put them into a page. These ways are open to scripts alone.
const element = document.createElement.bind(document);
document.createElement = (name, ...more) => {
  if (name !== "style") return element(name, ...more);
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  return Object.defineProperty(element("template"), "textContent", { set: (text) => sheet.replaceSync(text) });
};
const attribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function set(name, value) {
  if (name === "style") this.style.cssText = value;
  else attribute.call(this, name, value);
};

const SILENT = [0, 1, 2, 4, 8, 9, 10, 11, 12, 52, 104, 110, 111, 112];
const FOCUS = 1004; // tells the guest who looks

// Leave out all sequences that would be answered, or do more than show something.
function mute({ parser }) {
  for (const number of SILENT) parser.registerOscHandler(number, () => true);
  for (const id of [
    { final: "c" }, { prefix: ">", final: "c" }, { prefix: "=", final: "c" },
    { final: "n" }, { prefix: "?", final: "n" }, { final: "t" }, { prefix: ">", final: "q" },
    { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" },
  ]) parser.registerCsiHandler(id, () => true);
  parser.registerCsiHandler({ prefix: "?", final: "h" }, (params) => params.includes(FOCUS));
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
}

// In its last corner xterm.js 6.0.0 cannot erase all that is above: it breaks.
function mend(terminal) {
  const breaks = (params) => {
    const { cursorX, cursorY } = terminal.buffer.active;
    return params[0] === 1 && cursorY + 1 >= terminal.rows && cursorX + 1 >= terminal.cols;
  };
  for (const prefix of [undefined, "?"]) terminal.parser.registerCsiHandler({ prefix, final: "J" }, breaks);
}

// Some bytes of a guest must not keep the page busy, nor fill its memory: xterm.js 6.0.0 does
// what follows as often as it is told, up to two thousand million times, gives a cell as many
// accents as come, and keeps all for a screen reader until a line ends.
const TIMES = 255; // more than this screen has lines, columns or stops
const ACCENTS = 32; // code units of a cell
const SPOKEN = 2000; // characters that are read out until somebody types
const SHOWN = 4096; // bytes after which the page gets its turn

function bound({ parser, _core: core }) {
  for (const final of "LMSTIZb") parser.registerCsiHandler({ final }, ([times]) => times > TIMES);
  const line = Object.getPrototypeOf(core.buffer.lines.get(0));
  if (line.bounded) return;
  const add = line.addCodepointToCell;
  line.bounded = true;
  line.addCodepointToCell = function accent(at, ...more) {
    if (!(this._combined[at]?.length >= ACCENTS)) add.call(this, at, ...more);
  };
}

function hush(reader) {
  const [hear, clear] = [reader._handleChar, reader._clearLiveRegion].map((one) => one.bind(reader));
  let heard = 0;
  reader._handleChar = (said) => {
    heard += said.length;
    if (heard <= SPOKEN) hear(said);
  };
  reader._clearLiveRegion = () => {
    heard = 0;
    clear();
  };
}

// The door takes no message of more than 64 KiB: what is pasted may be longer.
const PIECE = 16384;

const style = getComputedStyle(document.body);
function made() {
  const terminal = new Terminal({
    fontFamily: style.getPropertyValue("--mono"),
    fontSize: 14,
    screenReaderMode: true,
    scrollback: 5000,
    theme: { background: "#15181b", foreground: "#e4e6e8" },
  });
  mute(terminal);
  mend(terminal);
  bound(terminal);
  terminal.open(page.querySelector("[data-screen]"));
  hush(terminal._core._accessibilityManager.value);
  terminal.textarea.disabled = true; // until there is somebody to type to
  return terminal;
}

let terminal = made();
let line = null;
whenAsked((link) => {
  terminal.dispose();
  terminal = made();
  line = link;
  const bytes = new TextEncoder();
  const send = (data) => link.readyState === WebSocket.OPEN && link.send(data);
  terminal.onData((text) => {
    const typed = bytes.encode(text);
    for (let at = 0; at < typed.length; at += PIECE) send(typed.subarray(at, at + PIECE));
  });
  terminal.onBinary((text) => send(Uint8Array.from(text, (one) => one.charCodeAt(0))));
  link.onmessage = ({ data }) => {
    if (typeof data === "string") return;
    const said = new Uint8Array(data);
    // The door says no more than was shown, so that a guest cannot fill the browser.
    for (let at = 0; at < said.length; at += SHOWN) {
      const part = said.subarray(at, at + SHOWN);
      terminal.write(part, () => send(String(part.length)));
    }
  };
  terminal.textarea.disabled = false;
  terminal.focus();
  return () => {
    terminal.textarea.disabled = true;
  };
});

// Should a guest find a way to break the terminal, the next one is a new one.
window.addEventListener("error", () => line?.close());
