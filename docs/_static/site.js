// A table that is too wide for a phone becomes a list of its rows (site.css). Those of many columns are figures: they scroll.
const PHONE = matchMedia("(max-width: 46em)");
const COLUMNS = 4;
const ROLES = { table: "table", "thead, tbody": "rowgroup", tr: "row", th: "columnheader", td: "cell" };

const lists = [...document.querySelectorAll(".table-wrapper")].filter((box) => box.querySelectorAll("th").length <= COLUMNS);
for (const box of lists) {
  const heads = [...box.querySelectorAll("th")].map((each) => each.textContent.trim());
  for (const cell of box.querySelectorAll("td + td")) if (cell.textContent.trim()) cell.dataset.label = heads[cell.cellIndex];
  // Some browsers take a table for none once it is displayed as blocks.
  for (const [css, role] of Object.entries(ROLES)) for (const each of box.querySelectorAll(css)) each.setAttribute("role", role);
}

const fit = () => {
  for (const box of lists) {
    box.classList.remove("rows");
    if (PHONE.matches && box.scrollWidth > box.clientWidth) box.classList.add("rows");
  }
  // What scrolls sideways is for the keyboard, too: Safari's does not come to it by itself.
  for (const box of document.querySelectorAll(".highlight pre, .table-wrapper, p:has(> .recording)")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
fit();
addEventListener("load", fit);
addEventListener("resize", fit);

// What opens the menus of a narrow window is a button to the keyboard (site.css).
for (const icon of document.querySelectorAll("label.nav-overlay-icon .icon, label.toc-overlay-icon .icon")) {
  const box = icon.parentElement.control;
  icon.tabIndex = 0;
  icon.setAttribute("role", "button");
  icon.setAttribute("aria-label", box.getAttribute("aria-label"));
  icon.addEventListener("keydown", (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    box.click();
  });
}

// A button that copies a block: of a terminal, what is typed there, without the prompts and what was printed.
const typed = (pre) => {
  const copy = pre.cloneNode(true);
  const isTerminal = copy.querySelector(".gp") !== null;
  for (const each of copy.querySelectorAll(".gp, .go")) each.remove();
  const lines = copy.textContent.trimEnd().split("\n");
  return (isTerminal ? lines.filter((line) => line.trim()) : lines).join("\n");
};

const told = document.createElement("p");
told.setAttribute("role", "status");
told.className = "visually-hidden";
if (navigator.clipboard) document.body.append(told);

for (const pre of navigator.clipboard ? document.querySelectorAll("div.highlight > pre") : []) {
  const text = typed(pre);
  const button = document.createElement("button");
  const say = (word) => button.setAttribute("aria-label", word); // shown by the style: it is no part of the page's text
  button.type = "button";
  button.className = "copy";
  say("Copy");
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard.writeText(text).then(() => "Copied", () => "Not copied");
    say(done);
    told.textContent = done;
    setTimeout(() => {
      say("Copy");
      told.textContent = "";
    }, 2500);
  });
  if (text) pre.after(button);
}
