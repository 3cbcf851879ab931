/**
 * Snapshot of a live page: what is rendered now, as HTML for the extractor.
 *
 * One function without imports or outer names, so that its source, less the word `export`,
 * can be evaluated in any page through the DevTools protocol. It reads the page and changes
 * nothing in it.
 *
 * Kept: rendered text and its structure, open shadow roots where they stand, contents of
 * same-origin frames, what the head says about the page. A closed `<details>` is kept: its
 * text is one click away. Left out: scripts, styles, media, cross-origin frames, whatever
 * isn't rendered, everything typed or chosen in form fields, and pyweb's own panel
 * (elements with the attribute `data-pyweb`).
 *
 * `html` stops growing at 4 million characters (some 4 MB): that is several long books, and
 * a page larger than that would only be cut later, by the token budget.
 *
 * @param {Document} document
 * @returns {{html: string, url: string, title: string, language: string, selection: string}}
 */
export function snapshot(document) {
  const MAX_HTML = 4_000_000;
  const MAX_SELECTION = 20_000;
  const DROPPED = new Set(
    ("SCRIPT STYLE TEMPLATE NOSCRIPT LINK META BASE HEAD TITLE SVG MATH CANVAS VIDEO AUDIO IMG PICTURE SOURCE " +
      "OBJECT EMBED MAP TRACK INPUT TEXTAREA SELECT DATALIST OPTION BUTTON METER PROGRESS").split(" "),
  );
  const VOID = new Set(["BR", "HR", "WBR"]);
  // Names that extraction looks at; values of others may be secrets, styles or megabytes.
  const ATTRIBUTES = ["id", "class", "role", "lang", "aria-hidden", "itemprop", "itemtype", "href", "open", "rel"];
  const MAX_ATTRIBUTE = 500;
  // Not all: a page may keep its CSRF token in a meta element.
  const METAS = /^(og:|article:|twitter:title$|description$|author$|keywords$)/i;

  const parts = [];
  let length = 0;

  function emit(text) {
    parts.push(text);
    length += text.length;
  }

  function escape(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
  }

  function attributes(element) {
    let text = "";
    for (const name of ATTRIBUTES) {
      const value = element.getAttribute(name);
      if (value !== null && value.length <= MAX_ATTRIBUTE) text += ` ${name}="${escape(value)}"`;
    }
    return text;
  }

  function isOwn(element) {
    return element.hasAttribute("data-pyweb");
  }

  /** Nodes shown inside an element: a slot's, a shadow root's or its own. */
  function shown(element) {
    if (element.tagName === "SLOT") {
      const assigned = element.assignedNodes({ flatten: true });
      return assigned.length ? assigned : element.childNodes;
    }
    return (element.shadowRoot ?? element).childNodes;
  }

  function frameBody(frame) {
    try {
      return frame.contentDocument?.body ?? null;
    } catch {
      return null; // another origin
    }
  }

  function walkAll(nodes, state) {
    for (const node of nodes) walk(node, state);
  }

  /** A custom element is a block to the extractor where it is one to the eye. */
  function nameFor(element, inline) {
    const name = element.localName;
    if (/^(slot|iframe|frame)$/.test(name)) return "div";
    return name.includes("-") ? (inline ? "span" : "div") : name;
  }

  function walkElement(element, state) {
    const tag = element.tagName.toUpperCase();
    if (DROPPED.has(tag) || isOwn(element)) return;
    const style = element.ownerDocument.defaultView?.getComputedStyle(element);
    if (!style || style.display === "none") return;
    if (VOID.has(tag)) {
      emit(`<${element.localName}>`);
      return;
    }
    // `visibility` is inherited but a descendant may be visible again: only text is left out.
    const inside = { visible: style.visibility === "visible", pre: state.pre || tag === "PRE" };
    if (tag === "IFRAME" || tag === "FRAME") {
      const body = inside.visible ? frameBody(element) : null;
      if (body) {
        emit("<div>");
        walkAll(shown(body), inside);
        emit("</div>");
      }
      return;
    }
    if (tag === "SLOT") {
      walkAll(shown(element), inside);
      return;
    }
    const inline = /^(inline|contents|ruby)/.test(style.display);
    const name = nameFor(element, inline);
    // Spans laid out as boxes stand apart on the screen, and must not run together as text.
    const gap = inline || state.pre ? "" : "\n";
    emit(`${gap}<${name}${attributes(element)}>`);
    walkAll(shown(element), inside);
    emit(`</${name}>${gap}`);
  }

  function walk(node, state) {
    if (length > MAX_HTML) return;
    if (node.nodeType === 1) walkElement(node, state);
    else if (node.nodeType === 3 && state.visible) emit(escape(node.data.slice(0, MAX_HTML - length)));
  }

  /** The schema.org types that the page declares; the scripts themselves are left out. */
  function schemaTypes() {
    const types = new Set();
    for (const script of document.querySelectorAll('script[type="application/ld+json"]')) {
      for (const match of script.textContent.matchAll(/"@type"\s*:\s*(\[[^\]]*\]|"[^"]*")/g)) {
        for (const name of match[1].matchAll(/"(\w{1,60})"/g)) types.add(name[1]);
      }
    }
    return [...types].slice(0, 50).join(" ");
  }

  function head() {
    emit(`<head><meta charset="utf-8"><title>${escape(document.title)}</title>`);
    for (const meta of document.querySelectorAll("meta[content]")) {
      const name = meta.getAttribute("property") ?? meta.getAttribute("name") ?? "";
      const content = meta.getAttribute("content");
      if (METAS.test(name) && content.length <= MAX_ATTRIBUTE) {
        emit(`<meta property="${escape(name)}" content="${escape(content)}">`);
      }
    }
    emit(`<meta property="schema:type" content="${schemaTypes()}"></head>`);
  }

  /** Selected text, but for what is selected in a form field or in our own panel. */
  function selectedText() {
    const selection = document.getSelection();
    const anchor = selection?.anchorNode;
    const holder = anchor?.nodeType === 1 ? anchor : anchor?.parentElement;
    const field = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (!holder || field || holder.closest("[data-pyweb]")) return "";
    return String(selection).slice(0, MAX_SELECTION);
  }

  const language = document.documentElement?.lang ?? "";
  emit(`<!DOCTYPE html><html lang="${escape(language)}">`);
  head();
  if (document.body) walk(document.body, { visible: true, pre: false });
  emit("</html>");
  return { html: parts.join(""), url: document.URL, title: document.title, language, selection: selectedText() };
}
