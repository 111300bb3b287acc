// Small manners of the pages; what they show is made by the server.
const byId = (id) => document.getElementById(id);
const drawFigures = () => {
  for (const block of document.querySelectorAll("script[data-figure]:not([data-done])")) {
    block.dataset.done = "yes";
    drawn(block.dataset.figure, JSON.parse(block.textContent));
  }
};
const redraw = () => {
  for (const block of document.querySelectorAll("script[data-figure]")) drawn(block.dataset.figure, JSON.parse(block.textContent));
};
const marked = () => {
  for (const said of document.querySelectorAll(".error")) {
    const field = byId(said.id.replace("error-", ""));
    if (!field) continue;
    if (said.textContent.trim()) {
      field.setAttribute("aria-invalid", "true");
      field.closest("details")?.setAttribute("open", "");
    } else field.removeAttribute("aria-invalid");
  }
};
const settled = () => {
  drawFigures();
  reachable();
  marked();
  const answer = document.querySelector("[data-answered]:not([data-wired])");
  if (answer) {
    answer.dataset.wired = "yes";
    sortable(answer);
    pickable(answer);
    filterable(answer);
    document.documentElement.dataset.answered = "yes";
  }
};
settled();
document.addEventListener("htmx:afterSettle", settled);
document.addEventListener("htmx:sseMessage", settled);
document.addEventListener("htmx:sseError", () => {
  const said = document.querySelector("#answer .state");
  if (said) said.textContent = "The server is busy or away; asking again.";
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
// Open fields are left out of the address.
document.addEventListener("formdata", (event) => {
  const open = [...event.formData.entries()].filter(([name, value]) => value === "" && name !== "price" && name !== "content");
  for (const [name] of open) if (event.formData.getAll(name).every((value) => value === "")) event.formData.delete(name);
});
document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const text = copy.dataset.copy;
    navigator.clipboard?.writeText(text).then(() => { copy.textContent = "Copied"; }, () => {});
    return;
  }
  const step = event.target.closest("[data-half], [data-twice]");
  if (!step) return;
  const field = byId(step.dataset.half || step.dataset.twice);
  const own = parseInt(field.value || field.placeholder, 10);
  if (!own) { field.focus(); return; }
  field.value = String(step.dataset.twice ? own * 2 : Math.max(1, Math.floor(own / 2)));
  field.dispatchEvent(new Event("change", { bubbles: true }));
});
const box = byId("content");
const take = async (file) => { if (file) { box.value = await file.text(); box.focus(); } };
if (box) {
  byId("file").addEventListener("change", (event) => take(event.target.files[0]));
  box.addEventListener("dragover", (event) => event.preventDefault());
  box.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files[0]); });
}
