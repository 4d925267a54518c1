"use strict";
// What makes the pages quicker to use. Without it everything is there too, only not folded away.

// A field that is not for the chosen kind or answer is hidden.
function follow(form) {
  for (const part of form.querySelectorAll("[data-when]")) {
    const [name, wanted] = part.dataset.when.split("=");
    const chosen = form.querySelector(`input[name="${name}"]:checked`);
    part.hidden = !(chosen && wanted.split(" ").includes(chosen.value));
  }
  for (const column of form.querySelectorAll("[data-column]")) {
    const kind = column.querySelector("select").value;
    for (const part of column.querySelectorAll("[data-kinds]")) {
      part.hidden = !part.dataset.kinds.split(" ").includes(kind);
    }
  }
}

// The slider stops where the forecast was made; the number beside it is what counts.
function slide() {
  const box = document.querySelector("[data-slider]");
  const field = document.getElementById("epsilon");
  if (!box || !field) return;
  const slider = document.getElementById("slider");
  const stops = slider.dataset.epsilons.split(" ").map(Number);
  const distance = (stop, epsilon) => Math.abs(Math.log(stop / epsilon));
  const show = () => {
    const epsilon = Number(field.value) > 0 ? Number(field.value) : stops[0];
    const near = stops.reduce((a, b) => (distance(b, epsilon) < distance(a, epsilon) ? b : a));
    slider.value = String(stops.indexOf(near));
    slider.setAttribute("aria-valuetext", `ε = ${epsilon}`);
    tell(near);
  };
  slider.addEventListener("input", () => {
    field.value = String(stops[Number(slider.value)]);
    show();
  });
  field.addEventListener("input", show);
  box.hidden = false;
  show();
}

// The line of the forecast that is nearest, and its first effect in a sentence.
function tell(epsilon) {
  const table = document.getElementById("forecast");
  if (!table) return;
  const name = table.querySelector("thead th:nth-child(2)");
  for (const row of table.querySelectorAll("[data-epsilon]")) {
    const chosen = Number(row.dataset.epsilon) === epsilon;
    row.classList.toggle("chosen", chosen);
    const margin = row.querySelector("td");
    if (chosen && margin) {
      document.getElementById("chosen").textContent =
        `With ε = ${epsilon}, the effect of ${name.textContent} will be known to ${margin.textContent}.`;
    }
  }
}

// While something is done, its words come by themselves.
async function watch() {
  const place = document.getElementById("lines");
  for (;;) {
    await new Promise((wake) => setTimeout(wake, 300));
    let found;
    try {
      found = await (await fetch("progress", { credentials: "same-origin" })).json();
    } catch {
      place.textContent = "The wizard does not answer any more. Start it again with the job file: nothing is paid twice.";
      return;
    }
    const words = found.lines.join(". ");
    if (place.textContent.trim() !== words) place.textContent = words;
    document.getElementById("rows").textContent = found.rows.toLocaleString("en");
    if (found.done) {
      window.location.replace("work");
      return;
    }
  }
}

// A mistake inside something folded is unfolded, and the list of mistakes is read first.
function mend() {
  const list = document.getElementById("mend");
  if (!list) return;
  for (const wrong of document.querySelectorAll('[aria-invalid="true"]')) {
    const folded = wrong.closest("details");
    if (folded) folded.open = true;
  }
  list.focus();
}

for (const form of document.querySelectorAll("form")) {
  form.addEventListener("change", () => follow(form));
  form.addEventListener("submit", () => {
    // After the form is on its way: a second click must not send it twice.
    setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }));
  });
  follow(form);
}
slide();
mend();
if (document.querySelector("[data-working]")) watch();
// A page that the browser kept is asked for anew.
window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });
