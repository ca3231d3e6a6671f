/** Read queries, with the tokens of src/surelabel/retrieval/query.py, to show and change labels. */

const TOKENS = [
  ["space", /\s+/y],
  ["operator", /[&|!()~]/y],
  ["comparison", />=?|<=?(?=\s*[\d.])/y],
  ["field", /(?:date|width|height)\s*(?:<=|>=|=|<|>)\s*[^\s&|!()"]*/iy],
  ["prefix", /(?:path|like):(?:[^\s&|()"]+|"(?:[^"]|"")*"(?:#[^\s&|()"]*)?)/iy],
  ["quoted", /"(?:[^"]|"")*"/y],
  ["word", /(?:[^\s&|!()~"<>:]|<(?!=?\s*[\d.]))+/y],
];
const OPERATOR_WORDS = { and: "&", not: "!" };
const NEEDS_QUOTES = /[&|!()<>~:"]|(?:^|\s)(?:date|width|height)\s*(?:=|$)/i;

/** Return a label as it is written in a query, in quotes if necessary. */
export function quoteLabel(name) {
  const words = name.trim().split(/\s+/);
  const isPlain = !NEEDS_QUOTES.test(name) && words.join(" ") === name;
  const hasOperator = words.some((word) => word.toLowerCase() in OPERATOR_WORDS);
  return isPlain && !hasOperator ? name : quote(name);
}

/** Return a path as it is written after "like:" or "path:". */
export function quotePath(path) {
  return !path || /[\s&|()"#]/.test(path) ? quote(path) : path;
}

/** Return the tokens of a query: kind, text, start and end. The kind of a wrong one is "error". */
export function queryTokens(text) {
  const tokens = [];
  for (let start = 0; start < text.length; ) {
    const token = tokenAt(text, start);
    if (token.kind !== "space") addToken(tokens, token);
    start = token.end;
  }
  return tokens;
}

/**
 * Return the labels of a query with their signs.
 * @returns {{labels: {name: string, sign: number, start: number, end: number}[],
 *   isConjunction: boolean, isPlain: boolean}} `isConjunction` is true for a conjunction of labels
 *   and filters, and `isPlain` for a conjunction of labels alone.
 */
export function queryLabels(text) {
  const tokens = queryTokens(text);
  const labels = [];
  const signs = [1];
  let sign = 1;
  let isConjunction = true;
  let isPlain = true;
  let start = null;
  tokens.forEach((token, index) => {
    const previous = tokens[index - 1]?.kind;
    if (token.kind === "!") {
      sign = -sign;
      start ??= token.start;
      return;
    }
    if (token.kind === "(") signs.push(signs.at(-1) * sign);
    if (token.kind === ")" && signs.length > 1) signs.pop();
    if (token.kind === "label" && previous !== "comparison" && previous !== "~") {
      labels.push({
        name: token.name,
        sign: signs.at(-1) * sign,
        start: start ?? token.start,
        end: token.end,
      });
    }
    if (["(", ")", "|", "~", "error"].includes(token.kind)) isConjunction = false;
    if (!["label", "&"].includes(token.kind)) isPlain = false;
    [sign, start] = [1, null];
  });
  return { labels, isConjunction, isPlain: isPlain && isConjunction };
}

/** Return a query in which a label is wanted (1), excluded (-1) or not part of the query (0). */
export function withLabel(text, name, sign) {
  const { labels, isPlain } = queryLabels(text);
  const term = (sign < 0 ? "!" : "") + quoteLabel(name);
  if (isPlain) {
    const others = labels.filter((label) => label.name !== name);
    const terms = others.map((label) => (label.sign < 0 ? "!" : "") + quoteLabel(label.name));
    if (sign === 0) return terms.join(" & ");
    const index = labels.findIndex((label) => label.name === name);
    terms.splice(index < 0 ? terms.length : index, 0, term);
    return terms.join(" & ");
  }
  if (sign === 0) return withoutTopLevelLabel(text, name);
  const removed = withoutTopLevelLabel(text, name);
  if (!removed.trim()) return term;
  return `${hasTopLevelOr(removed) ? `(${removed.trim()})` : removed.trim()} & ${term}`;
}

/** Return the position after the code points before an error; Python counts code points. */
export function textPosition(text, codePoints) {
  return Array.from(text).slice(0, codePoints).join("").length;
}

/**
 * Return the label that is being written at a cursor, or null.
 * @returns {{prefix: string, start: number, end: number}|null} The text from `start` to `end` is
 *   replaced by the completed label.
 */
export function labelAtCursor(text, cursor) {
  const before = text.slice(0, cursor);
  const tokens = queryTokens(before);
  const last = tokens.at(-1);
  if (last === undefined || last.end < before.trimEnd().length) return null;
  const isSentence = tokens.at(-2)?.kind === "~" || tokens.at(-2)?.kind === "comparison";
  if (isSentence) return null;
  const rest = queryTokens(text.slice(last.start))[0];
  const end = Math.max(cursor, rest ? last.start + rest.end : cursor);
  if (last.kind === "error" && text[last.start] === '"') {
    const prefix = before.slice(last.start + 1).replaceAll('""', '"');
    return { prefix, start: last.start, end: cursor };
  }
  if (last.kind !== "label" || last.isQuoted) return null;
  return { prefix: last.name, start: last.start, end };
}

function tokenAt(text, start) {
  for (const [kind, pattern] of TOKENS) {
    pattern.lastIndex = start;
    const match = pattern.exec(text);
    if (match) return { kind, text: match[0], start, end: pattern.lastIndex };
  }
  const end = text[start] === '"' ? text.length : start + 1; // a quote without its second quote
  return { kind: "error", text: text.slice(start, end), start, end };
}

/** Add a token; adjacent words are one label. */
function addToken(tokens, token) {
  const operator = token.kind === "word" ? OPERATOR_WORDS[token.text.toLowerCase()] : undefined;
  const last = tokens.at(-1);
  if (operator) tokens.push({ ...token, kind: operator });
  else if (token.kind === "operator") tokens.push({ ...token, kind: token.text });
  else if (token.kind === "quoted") {
    const name = token.text.slice(1, -1).replaceAll('""', '"');
    tokens.push({ ...token, kind: "label", name, isQuoted: true });
  } else if (token.kind !== "word") tokens.push(token);
  else if (last?.kind === "label" && !last.isQuoted) {
    last.name += ` ${token.text}`;
    last.end = token.end;
  } else tokens.push({ ...token, kind: "label", name: token.text, isQuoted: false });
}

/** Return the parts between the "&" outside of parentheses, or null if a "|" is there. */
function topLevelParts(text) {
  const parts = [];
  let depth = 0;
  let start = 0;
  for (const token of queryTokens(text)) {
    if (token.kind === "(") depth += 1;
    if (token.kind === ")") depth -= 1;
    if (depth === 0 && token.kind === "|") return null;
    if (depth === 0 && token.kind === "&") {
      parts.push(text.slice(start, token.start).trim());
      start = token.end;
    }
  }
  parts.push(text.slice(start).trim());
  return parts;
}

function hasTopLevelOr(text) {
  return topLevelParts(text) === null;
}

/** Return a query without the terms outside of parentheses that consist of a label. */
function withoutTopLevelLabel(text, name) {
  const parts = topLevelParts(text);
  if (parts === null) return text;
  const kept = parts.filter((part) => {
    const { labels, isPlain } = queryLabels(part.replace(/^!\s*/, ""));
    return !(isPlain && labels.length === 1 && labels[0].name === name);
  });
  return kept.join(" & ");
}

function quote(text) {
  return `"${text.replaceAll('"', '""')}"`;
}
