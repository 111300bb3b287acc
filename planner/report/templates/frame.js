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
filterable(document);
reachable();
