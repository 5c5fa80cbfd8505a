// Passkeys, which browsers offer to scripts only. Without this file every page works all the same.
"use strict";

const supported = window.PublicKeyCredential && PublicKeyCredential.parseRequestOptionsFromJSON;

async function answer(form) {
  const options = JSON.parse(form.dataset.passkey);
  const credential = form.dataset.passkeyStep === "create"
    ? await navigator.credentials.create(
        { publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
    : await navigator.credentials.get(
        { publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
  return JSON.stringify(credential.toJSON());
}

function offer() {
  for (const form of supported ? document.querySelectorAll("form[data-passkey]") : []) offerIn(form);
}

function offerIn(form) {
  const problem = form.querySelector("[data-passkey-problem]");
  for (const button of form.querySelectorAll("button[data-passkey-press]")) {
    button.hidden = false;
    button.addEventListener("click", async (event) => {
      event.preventDefault();
      problem.hidden = true;
      try {
        form.elements.passkey.value = await answer(form);
      } catch {
        problem.hidden = false;
        return;
      }
      form.requestSubmit(button);
    });
  }
}

offer();
document.addEventListener("shown", offer); // another page in the place of the one that was there
