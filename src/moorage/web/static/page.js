// What the page does beyond links and forms: it copies commands. All else works without.
"use strict";

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
