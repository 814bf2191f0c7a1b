// A guest's screen, which speaks VNC.

import RFB from "./novnc-1.7.0/core/rfb.js";
import { LEAVE, page, say, whenAsked } from "./line.js";

const asks = page.querySelector("[data-password]");

whenAsked((link, known) => {
  const screen = page.querySelector("[data-screen]");
  const shown = new RFB(screen, link, { credentials: { password: known.password } });
  shown.scaleViewport = true;
  shown.focusOnClick = true;
  shown.background = "transparent";
  // A guest that has a password of its own is told it by whoever looks.
  shown.addEventListener("credentialsrequired", () => {
    asks.hidden = false;
    asks.querySelector("input").focus();
  });
  asks.onsubmit = (event) => {
    event.preventDefault();
    asks.hidden = true;
    shown.sendCredentials({ password: asks.querySelector("input").value });
    asks.reset();
  };
  shown.addEventListener("connect", () => {
    say(`This is the screen of ${known.instance} on ${known.node}; ${LEAVE} leaves.`);
    shown.focus();
  });
  shown.addEventListener("securityfailure", () => {
    say("The password is not the guest's.");
    link.close();
  });
  const keys = page.querySelector("[data-keys]");
  keys.hidden = false;
  keys.onclick = () => shown.sendCtrlAltDel();
  return () => {
    keys.hidden = asks.hidden = true;
    shown.disconnect();
  };
});
