/** Format numbers and paths. */

const COUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SMALL = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Return a count with separators, such as "1,234". */
export function formatCount(count) {
  return COUNT.format(count);
}

/** Return a count with its noun, such as "1 image" or "1,234 images". */
export function countOf(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Return an expected number, with one decimal below 10. */
export function formatExpected(number) {
  return number < 10 ? SMALL.format(number) : COUNT.format(number);
}

/** Return a probability as percent. Only exactly 0 and 1 are shown as 0 % and 100 %. */
export function formatPercent(probability) {
  if (probability > 0 && probability < 0.0005) return "< 0.1 %";
  if (probability < 1 && probability >= 0.9995) return "> 99.9 %";
  const percent = probability * 100;
  return `${percent === 0 || percent === 100 ? percent : percent.toFixed(1)} %`;
}

/** Return a number with four significant digits, or with four decimals below 1. */
export function formatNumber(number) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  const text = Math.abs(number) < 1 ? number.toFixed(4) : number.toPrecision(4);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** Return the last part of a path. Only paths of Windows are separated by backslashes. */
export function fileName(path) {
  const separator = path.includes("/") ? "/" : /[/\\]/;
  return path.split(separator).pop() || path;
}

/** Return a name that does not change the direction of the text around it. */
export function isolate(name) {
  return `\u2068${name}\u2069`;
}

/** Return a path relative to the root of the index, if it is below the root. */
export function relativePath(path) {
  const root = document.getElementById("content").dataset.root.replace(/[/\\]$/, "");
  return path.startsWith(`${root}/`) || path.startsWith(`${root}\\`)
    ? path.slice(root.length + 1)
    : path;
}
