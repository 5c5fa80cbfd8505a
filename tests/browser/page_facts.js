// What a page is made of; `faint`: the texts whose contrast with what is behind them is under 4.5 to 1 (WCAG 2.2, 1.4.3).
const linear = (x) => (x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const numbers = (color) => (color.match(/[\d.]+/g) || []).map(Number);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const color = numbers(getComputedStyle(e).backgroundColor);
    if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
const faint = [];
for (const e of document.querySelectorAll("main *, header *")) {
  const speaks = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  if (!speaks || !e.getClientRects().length || e.closest(".unseen, [aria-hidden]")) continue;
  const front = luminance(numbers(getComputedStyle(e).color));
  const back = luminance(behind(e));
  const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  if (ratio < 4.5) faint.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
}
return {
  faint,
  width: document.documentElement.scrollWidth,
  scripts: document.scripts.length,
  loaded: [...document.querySelectorAll("img, link[href], script, iframe")]
    .map((each) => each.src || each.href || ""),
  titles: document.querySelectorAll("h1").length,
  mains: document.querySelectorAll("main").length,
  headings: [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
    .map((each) => Number(each.tagName[1])),
};
