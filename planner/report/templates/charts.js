const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// Figures name their colours, "@tensor": what that is depends on the reader's theme.
const painted = (part) => {
  if (typeof part === "string") return part.startsWith("@") ? token(part.slice(1)) : part;
  if (Array.isArray(part)) return part.map(painted);
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, painted(value)]));
};
const axis = () => ({
  gridcolor: token("line"), zerolinecolor: token("line"), linecolor: token("line"), tickcolor: token("line"),
  automargin: true, fixedrange: true, ticks: "", title: { standoff: 8, font: { size: 12, color: token("dim") } },
});
const template = () => ({ layout: {
  font: { family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 12, color: token("ink") },
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: ["#3d70b2"],
  margin: { t: 12, r: 12, b: 44, l: 12 }, bargap: 0.28, dragmode: false,
  hoverlabel: { bgcolor: token("page"), bordercolor: token("line"), font: { size: 12, color: token("ink") }, align: "left" },
  xaxis: axis(), yaxis: axis(),
} });
const drawn = (id, data) => {
  const figure = painted(data);
  const layout = { ...figure.layout, template: template() };
  return Plotly.react(id, figure.data, layout, { responsive: true, displayModeBar: false });
};

const UNITS = { USD: 1, kUSD: 1e3, MUSD: 1e6, BUSD: 1e9, s: 1, min: 60, h: 3600, d: 86400, kWh: 1, MWh: 1e3 };
const figureOf = (text) => {
  const n = parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(n) ? null : n * (UNITS[text.trim().split(" ")[1]] ?? 1);
};
const compare = (a, b) => {
  const [x, y] = [figureOf(a), figureOf(b)];
  return x !== null && y !== null ? x - y : a.localeCompare(b);
};
const sorted = (head) => {
  const body = head.closest("table").tBodies[0];
  const down = head.ariaSort !== "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.ariaSort = down ? "ascending" : "descending";
  const text = (row) => row.cells[head.cellIndex].textContent;
  const rows = [...body.rows].sort((a, b) => compare(text(a), text(b)));
  body.append(...(down ? rows : rows.reverse()));
};
const sortable = (root) => root.querySelectorAll("th").forEach((head) => {
  head.tabIndex = 0;
  head.addEventListener("click", () => sorted(head));
  head.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sorted(head);
  });
});
const pickable = (root) => root.querySelectorAll(".picks").forEach((set) => set.addEventListener("change", (event) => {
  if (event.target.type !== "radio") return;
  for (const part of set.querySelectorAll(":scope > .picked")) part.hidden = part.id !== event.target.value;
  // Charts that were hidden have no width yet.
  dispatchEvent(new Event("resize"));
}));
const filterable = (root) => root.querySelectorAll("input[type=search]").forEach((box) => box.addEventListener("input", () => {
  const wanted = box.value.toLowerCase();
  for (const row of box.parentElement.querySelectorAll("tbody tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
}));
// What scrolls on its own is reached with the keyboard.
const reachable = () => {
  for (const part of document.querySelectorAll(".wide")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  }
};
