// What scrolls sideways is for the keyboard, too: Safari's does not come to it by itself.
const reach = () => {
  for (const box of document.querySelectorAll(".highlight pre, .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("load", reach);
addEventListener("resize", reach);

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
