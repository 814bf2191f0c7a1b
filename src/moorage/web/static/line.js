// A line to a guest: a web socket, on which the door says first who is at the other end,
// and then carries bytes.

const PROTOCOL = "moorage";
// As in gnt-instance console; every other key is the guest's, Tab too.
export const LEAVE = "Ctrl-]";

// The elements of a console's page.
export const page = document.querySelector("[data-line]");
const told = page.querySelector("[data-told]");
const opens = page.querySelector("[data-open]");

// Say something beside the button.
export function say(sentence, hint = "") {
  told.textContent = [sentence, hint].filter(Boolean).join(" · ");
}

// Open the line; `begins` gets the web socket and what is known of the guest, and returns
// what is to be done at the end.
function open(begins) {
  const secret = document.querySelector(".who [name=secret]").value;
  const link = new WebSocket(`${location.pathname}/line`, [PROTOCOL, secret]);
  link.binaryType = "arraybuffer";
  const leave = (event) => {
    if (!event.ctrlKey || event.key !== "]") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    link.close();
  };
  let ends = () => {};
  let known = "";
  opens.disabled = true;
  say("Opening …");
  link.onmessage = (event) => {
    if (typeof event.data !== "string") return;
    const first = JSON.parse(event.data);
    known = first.error ? "" : first.instance;
    if (first.error) return say(first.error, first.hint);
    say(`Connected to ${first.instance} on ${first.node}; ${LEAVE} leaves.`);
    opens.hidden = true;
    document.addEventListener("keydown", leave, { capture: true });
    ends = begins(link, first);
  };
  link.addEventListener("close", () => {
    document.removeEventListener("keydown", leave, { capture: true });
    ends();
    if (known) say(`The line to ${known} has ended.`);
    else if (told.textContent === "Opening …") say("The line could not be opened: is somebody signed in still?");
    opens.hidden = opens.disabled = false;
    if (known) opens.focus();
  });
}

export function whenAsked(begins) {
  opens.disabled = false;
  opens.addEventListener("click", () => open(begins));
}
