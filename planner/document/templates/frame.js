const drawAll = () => Promise.all(Object.entries(figures).map(([id, data]) => drawn(id, data)));
drawAll().then(() => { document.documentElement.dataset.drawn = "yes"; });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  drawAll();
});
addEventListener("afterprint", drawAll);

sortable(document);
pickable(document);
reachable();
document.querySelectorAll("input[type=search]").forEach((box) => box.addEventListener("input", () => {
  const wanted = box.value.toLowerCase();
  for (const row of box.parentElement.querySelectorAll("tbody tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
}));
